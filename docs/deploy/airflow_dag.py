"""Index an archive every ten minutes. If Airflow's workers lack h5zarr, run its image with the same arguments."""

from __future__ import annotations

from datetime import datetime, timedelta

from airflow import DAG
from airflow.providers.standard.operators.bash import BashOperator  # Airflow 2: airflow.operators.bash

PROGRAM = "/opt/h5zarr/bin/h5zarr"
CONFIG = "/etc/h5zarr/archive.toml"
# Airflow's own id of the run is in every line of the log. It has only characters that h5zarr takes.
INDEX = f"{PROGRAM} index --config {CONFIG} --log-format json --wait 60 --run-id '{{{{ run_id }}}}'"
STATUS = f"{PROGRAM} status --config {CONFIG}"
# Secrets of a connection, as environment variables that the configuration file names as ${S3_KEY} and ${S3_SECRET}.
SECRETS = {"S3_KEY": "{{ conn.h5zarr_s3.login }}", "S3_SECRET": "{{ conn.h5zarr_s3.password }}"}

with DAG(
    dag_id="h5zarr_ocean",
    schedule="*/10 * * * *",
    start_date=datetime(2026, 1, 1),
    catchup=False,  # every run covers all files
    max_active_runs=1,  # the lease of the index does the same, also for runs by hand
    default_args={"retries": 2, "retry_delay": timedelta(minutes=1), "retry_exponential_backoff": True},
) as dag:
    # exec passes SIGTERM on to h5zarr. Exit code 1: files failed for the first time; the next run tries them again.
    index = BashOperator(
        task_id="index",
        bash_command=f"exec {INDEX}",
        skip_on_exit_code=1,
        env=SECRETS,
        append_env=True,
        execution_timeout=timedelta(hours=6),
    )
    # Fails as long as any source is failed, stale or vanished, and lists them.
    status = BashOperator(
        task_id="status",
        bash_command=STATUS,
        env=SECRETS,
        append_env=True,
        trigger_rule="all_done",
        retries=0,
        execution_timeout=timedelta(minutes=10),
    )
    index >> status
