"""Index a bucket every ten minutes. If Airflow's workers lack h5zarr, run its image with the same arguments."""

from __future__ import annotations

from datetime import datetime, timedelta

from airflow import DAG
from airflow.providers.standard.operators.bash import BashOperator  # Airflow 2: airflow.operators.bash

INDEX = (
    "h5zarr index 's3://bucket/ocean/**/*.nc' s3://refs/ocean/ --quiet --wait 60 "
    "--report /var/lib/airflow/reports/ocean.json"
)

with DAG(
    dag_id="h5zarr_ocean",
    schedule="*/10 * * * *",
    start_date=datetime(2026, 1, 1),
    catchup=False,  # every run covers all files
    max_active_runs=1,
    default_args={"retries": 2, "retry_delay": timedelta(minutes=1)},
) as dag:
    # exec passes SIGTERM on to h5zarr. Exit code 1: files failed for the first time; the next run tries them again.
    index = BashOperator(
        task_id="index",
        bash_command=f"exec {INDEX}",
        skip_on_exit_code=1,
        append_env=True,
        execution_timeout=timedelta(hours=6),
    )
    # Fails as long as any source is failed, stale or vanished, and lists them.
    status = BashOperator(
        task_id="status",
        bash_command="h5zarr status s3://refs/ocean/",
        trigger_rule="all_done",
        retries=0,
    )
    index >> status
