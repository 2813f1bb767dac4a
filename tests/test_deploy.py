"""The examples for schedulers are such as their programs take, and the commands in them are such as h5zarr takes."""

from __future__ import annotations

import json
import re
import runpy
import shlex
import sys
import tomllib
from datetime import UTC, datetime
from pathlib import Path
from types import ModuleType
from typing import Any, ClassVar, Self

import pytest

from h5zarr.cli import build_parser
from h5zarr.cli.config_file import read_collections
from h5zarr.cli.index_config import _options, _parser
from h5zarr.cli.index_options import EXAMPLES
from h5zarr.cli.index_results import _HURRY
from h5zarr.commands.index.dispatch import GRACE_SECONDS
from h5zarr.commands.index.index_report import IndexReport
from tests.collections_of_files import PROJECT

yaml = pytest.importorskip("yaml")
DEPLOY = PROJECT / "docs" / "deploy"
INDEXING, OPERATIONS = ((PROJECT / "docs" / name).read_text() for name in ("indexing.md", "operations.md"))
USER = 10001
AIRFLOW_RUN = "scheduled__2026-01-01T00:00:00+00:00"


def parse(words: list[str]) -> Any:
    """The arguments of a command, as h5zarr understands them."""
    try:
        arguments = build_parser().parse_args([word.replace("$(POD_NAME)", "pod-1") for word in words])
    except SystemExit:
        pytest.fail(f"h5zarr {shlex.join(words)} does not parse")
    if hasattr(arguments, "places") and not arguments.config:
        assert len(arguments.places) >= (1 if arguments.files_from else 2)
        assert arguments.places[-1].startswith("s3://")
    return arguments


def read_yaml(name: str) -> Any:
    return yaml.safe_load((DEPLOY / name).read_text())


def test_every_example_is_named_in_the_documentation() -> None:
    linked = set(re.findall(r"\(deploy/([^)]+)\)", OPERATIONS))
    assert linked == {path.name for path in DEPLOY.iterdir() if not path.name.startswith((".", "__"))}


def test_exit_codes_that_the_examples_rely_on_are_those_of_the_command() -> None:
    told = dict(re.findall(r"^  (\d+) +(.*)$", EXAMPLES, re.MULTILINE))
    assert told["0"].startswith("the run finished without new failures, or another run is active")
    assert told["1"].startswith("files failed for the first time since they changed")
    assert told["2"].startswith("the job could not run")
    assert told["143"].startswith("stopped by SIGTERM")
    explained = re.findall(r"^\| ([\d, ]+) \|", OPERATIONS, re.MULTILINE)
    assert {code for codes in explained for code in codes.split(", ")} == {*told, "130", "137"}


# --- the image


def instructions() -> list[tuple[str, str]]:
    """The instructions of the Containerfile, with lines joined that are continued, and without comments."""
    text = re.sub(r"^#.*\n", "", (PROJECT / "Containerfile").read_text(), flags=re.MULTILINE)
    lines = [line for line in re.sub(r"\\\n\s*", "", text).splitlines() if line.strip()]
    found = [line.partition(" ")[::2] for line in lines]
    assert {name for name, _ in found} <= {"FROM", "COPY", "RUN", "USER", "WORKDIR", "ENV", "ENTRYPOINT", "CMD"}
    return found


def test_the_image_runs_h5zarr_itself_and_not_as_root() -> None:
    found = dict(instructions())  # the last of each
    assert json.loads(found["ENTRYPOINT"]) == ["h5zarr"]
    assert found["USER"] == str(USER)
    assert f"--uid {USER}" in found["RUN"]
    assert found["FROM"].startswith("docker.io/library/python:3.13-slim")


def test_the_image_has_the_extras_that_there_are() -> None:
    (install,) = [rest for name, rest in instructions() if name == "RUN" and "pip install" in rest]
    extras = re.search(r"/source\[([\w,]+)\]", install)
    assert extras is not None
    wanted = extras[1].split(",")
    assert wanted == ["s3", "gcs", "azure", "http", "index", "otel", "zstd", "fast"]
    project = tomllib.loads((PROJECT / "pyproject.toml").read_text())["project"]
    assert set(wanted) <= set(project["optional-dependencies"])


def test_the_image_is_made_of_files_that_there_are() -> None:
    copies = [rest.split() for name, rest in instructions() if name == "COPY" and not rest.startswith("--from")]
    names = {name for *names, _ in copies for name in names}
    assert all((PROJECT / name).exists() for name in names)
    project = tomllib.loads((PROJECT / "pyproject.toml").read_text())["project"]
    assert {"pyproject.toml", "h5zarr", project["readme"], *project["license-files"]} == names


# --- cron


def test_the_crontab_has_commands_that_parse() -> None:
    lines = [line for line in (DEPLOY / "crontab").read_text().splitlines() if line and not line.startswith("#")]
    jobs = [line for line in lines if not re.match(r"\w+=", line)]
    assert len(jobs) == 3
    for job in jobs:
        *moment, command = job.split(None, 5)
        assert all(re.fullmatch(r"\*(/\d+)?|\d+", field) for field in moment)
        assert re.search(r"(?<!\\)%", command) is None  # which cron would take for the end of a line
        program, *words = shlex.split(command)
        assert program == "h5zarr"
        parse(words)


# --- Kubernetes


def kubernetes() -> tuple[Any, Any]:
    """The configuration map and the job."""
    config, job = yaml.safe_load_all((DEPLOY / "kubernetes-cronjob.yaml").read_text())
    assert (config["apiVersion"], config["kind"]) == ("v1", "ConfigMap")
    return config, job


def test_the_cronjob_runs_one_at_a_time_and_has_time_to_stop() -> None:
    _, job = kubernetes()
    assert (job["apiVersion"], job["kind"], job["spec"]["concurrencyPolicy"]) == ("batch/v1", "CronJob", "Forbid")
    pod = job["spec"]["jobTemplate"]["spec"]["template"]["spec"]
    assert pod["restartPolicy"] == "Never"  # without which there is no podFailurePolicy
    assert pod["terminationGracePeriodSeconds"] > GRACE_SECONDS + 2 + 2 * _HURRY
    assert pod["securityContext"]["runAsNonRoot"] is True
    assert pod["securityContext"]["runAsUser"] == USER


def test_the_container_of_the_cronjob_is_shut_in_and_writes_where_it_may() -> None:
    config, job = kubernetes()
    pod = job["spec"]["jobTemplate"]["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    arguments = parse(container["args"])
    mounted = {mount["mountPath"]: mount["name"] for mount in container["volumeMounts"]}
    volumes = {volume["name"]: volume for volume in pod["volumes"]}
    assert set(volumes) == set(mounted.values())
    assert volumes["config"]["configMap"]["name"] == config["metadata"]["name"]
    assert arguments.config == f"/etc/h5zarr/{next(iter(config['data']))}"
    assert mounted["/etc/h5zarr"] == "config"
    environment = {one["name"]: one for one in container["env"]}
    assert "emptyDir" in volumes[mounted[environment["TMPDIR"]["value"]]]
    assert arguments.run_id == "pod-1"
    assert environment["POD_NAME"]["valueFrom"]["fieldRef"]["fieldPath"] == "metadata.name"
    confined = container["securityContext"]
    assert confined["readOnlyRootFilesystem"] is True
    assert confined["allowPrivilegeEscalation"] is False
    assert confined["capabilities"] == {"drop": ["ALL"]}
    assert "secretRef" in container["envFrom"][0]


def test_the_configuration_of_the_cronjob_is_right(tmp_path: Path) -> None:
    config, job = kubernetes()
    (tmp_path / "archive.toml").write_text(config["data"]["archive.toml"])
    (one,) = read_collections(str(tmp_path / "archive.toml"), _options(_parser()), (), {"PUSH_PASSWORD": "x"})
    (container,) = job["spec"]["jobTemplate"]["spec"]["template"]["spec"]["containers"]
    assert int(container["resources"]["requests"]["cpu"]) == one.values["workers"]
    assert (one.values["log_format"], one.values["out"]) == ("json", "s3://refs/ocean/")
    assert not {"report", "metrics"} & set(one.values)  # there is no disk to write them to


def test_the_cronjob_is_not_repeated_for_files_that_failed() -> None:
    job = kubernetes()[1]["spec"]["jobTemplate"]["spec"]
    (found,) = [rule for rule in job["podFailurePolicy"]["rules"] if "onExitCodes" in rule]
    rule = found["onExitCodes"] | {"action": found["action"]}
    assert (rule["action"], rule["operator"], rule["values"]) == ("FailJob", "In", [1])
    assert rule["containerName"] == job["template"]["spec"]["containers"][0]["name"]


# --- AWS


def test_the_job_of_aws_batch_has_a_command_that_parses() -> None:
    job = json.loads((DEPLOY / "aws-batch-job-definition.json").read_text())
    container, given = job["containerProperties"], job["parameters"]
    words = [given[word.removeprefix("Ref::")] if word.startswith("Ref::") else word for word in container["command"]]
    arguments = parse(words)
    needs = {one["type"]: int(one["value"]) for one in container["resourceRequirements"]}
    assert needs["VCPU"] == arguments.workers
    assert (container["user"], container["readonlyRootFilesystem"]) == (str(USER), True)
    assert (arguments.log_format, bool(arguments.otel)) == ("json", True)
    (scratch,) = container["linuxParameters"]["tmpfs"]  # a directory of the host would belong to root
    assert {"name": "TMPDIR", "value": scratch["containerPath"]} in container["environment"]
    assert scratch["size"] < needs["MEMORY"] / 2  # it is part of the memory
    assert [secret["name"] for secret in container["secrets"]] == ["OTEL_EXPORTER_OTLP_HEADERS"]
    assert container["executionRoleArn"]  # without which no secret can be read


def test_the_job_of_aws_batch_is_repeated_unless_it_ran() -> None:
    job = json.loads((DEPLOY / "aws-batch-job-definition.json").read_text())
    rules = job["retryStrategy"]["evaluateOnExit"]
    assert len(rules) <= 5  # AWS takes no more
    by_code = {rule["onExitCode"]: rule["action"] for rule in rules if "onExitCode" in rule}
    assert by_code == {"143": "RETRY", "137": "RETRY", "2": "RETRY", "*": "EXIT"}
    assert list(by_code)[-1] == "*"  # the first that fits counts


def test_the_schedule_of_aws_starts_that_job() -> None:
    schedule = json.loads((DEPLOY / "aws-eventbridge-schedule.json").read_text())
    job = json.loads((DEPLOY / "aws-batch-job-definition.json").read_text())
    assert json.loads(schedule["Target"]["Input"])["JobDefinition"] == job["jobDefinitionName"]
    assert re.fullmatch(r"rate\(\d+ minutes\)", schedule["ScheduleExpression"])


# --- Airflow


class Recorded:
    """Stands for a class of Airflow, and keeps what it is called with."""

    made: ClassVar[list[dict[str, Any]]] = []

    def __init__(self, **given: Any) -> None:
        self.made.append(given)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        pass

    def __rshift__(self, other: object) -> object:
        return other


def test_the_dag_has_commands_that_parse_and_lets_files_fail(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Recorded, "made", [])
    bash = ModuleType("airflow.providers.standard.operators.bash")
    airflow = ModuleType("airflow")
    airflow.DAG = bash.BashOperator = Recorded  # type: ignore[attr-defined]
    for name in ("airflow.providers", "airflow.providers.standard", "airflow.providers.standard.operators"):
        monkeypatch.setitem(sys.modules, name, ModuleType(name))
    monkeypatch.setitem(sys.modules, "airflow", airflow)
    monkeypatch.setitem(sys.modules, bash.__name__, bash)
    runpy.run_path(str(DEPLOY / "airflow_dag.py"))
    dag, index, status = Recorded.made
    assert (dag["max_active_runs"], dag["catchup"]) == (1, False)
    assert index["skip_on_exit_code"] == 1
    assert index["bash_command"].startswith("exec ")
    assert index["execution_timeout"] > status["execution_timeout"]
    for task in (index, status):
        command = task["bash_command"].removeprefix("exec ").replace("{{ run_id }}", AIRFLOW_RUN)
        program, *words = shlex.split(command)
        assert program.startswith("/")
        assert program.endswith("/h5zarr")
        assert parse(words).config.startswith("/")
        assert (set(task["env"]), task["append_env"]) == ({"S3_KEY", "S3_SECRET"}, True)
        assert all(value.startswith("{{ conn.") for value in task["env"].values())
    assert parse(shlex.split(index["bash_command"].replace("{{ run_id }}", AIRFLOW_RUN))[2:]).log_format == "json"


# --- Prometheus


def test_the_alerts_are_about_metrics_that_there_are() -> None:
    now = datetime.now(UTC)
    written = IndexReport(newest_source=now, last_success=now).to_metrics("an index")
    names = set(re.findall(r"^(h5zarr_\w+)", written, re.MULTILINE))
    states, results = (set(re.findall(rf'{label}="(\w+)"', written)) for label in ("state", "result"))
    (group,) = read_yaml("prometheus-alerts.yaml")["groups"]
    assert len({rule["alert"] for rule in group["rules"]}) == len(group["rules"])
    for rule in group["rules"]:
        assert set(re.findall(r"h5zarr_\w+", rule["expr"])) <= names
        assert re.findall(r"h5zarr_\w+", rule["expr"])
        assert set(re.findall(r'state="(\w+)"', rule["expr"])) <= states
        assert set(re.findall(r'result="(\w+)"', rule["expr"])) <= results
        assert "{{ $labels.index }}" in rule["annotations"]["summary"]
    assert written.count('index="an index"') == sum(not line.startswith("#") for line in written.splitlines())
    assert set(re.findall(r"h5zarr_index_\w+", INDEXING + OPERATIONS)) <= names
