"""The examples for schedulers are such as their programs take, and the commands in them are such as h5zarr takes."""

from __future__ import annotations

import ast
import json
import re
import shlex
import tomllib
from pathlib import Path
from typing import Any

import pytest

from h5zarr.cli import build_parser
from h5zarr.cli.index import EXAMPLES
from h5zarr.commands.index.dispatch import GRACE_SECONDS
from h5zarr.commands.index.index_report import IndexReport
from tests.collections_of_files import PROJECT

yaml = pytest.importorskip("yaml")
DEPLOY = PROJECT / "docs" / "deploy"
INDEXING = (PROJECT / "docs" / "indexing.md").read_text()
USER = 10001


def parse(words: list[str]) -> Any:
    """The arguments of a command, as h5zarr understands them."""
    try:
        arguments = build_parser().parse_args(words)
    except SystemExit:
        pytest.fail(f"h5zarr {shlex.join(words)} does not parse")
    if hasattr(arguments, "places"):
        assert len(arguments.places) >= (1 if arguments.files_from else 2)
        assert arguments.places[-1].startswith("s3://")
    return arguments


def read_yaml(name: str) -> Any:
    return yaml.safe_load((DEPLOY / name).read_text())


def test_every_example_is_named_in_the_documentation() -> None:
    linked = set(re.findall(r"\(deploy/([^)]+)\)", INDEXING))
    assert linked == {path.name for path in DEPLOY.iterdir() if not path.name.startswith((".", "__"))}


def test_exit_codes_that_the_examples_rely_on_are_those_of_the_command() -> None:
    told = dict(re.findall(r"^  (\d+) +(.*)$", EXAMPLES, re.MULTILINE))
    assert told["0"].startswith("the run finished without new failures, or another run is active")
    assert told["1"].startswith("files failed for the first time since they changed")
    assert told["2"].startswith("the job could not run")
    assert told["143"].startswith("stopped by SIGTERM")


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
    assert wanted == ["s3", "gcs", "azure", "http", "index", "zstd", "fast"]
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


def test_the_cronjob_runs_one_at_a_time_and_has_time_to_stop() -> None:
    job = read_yaml("kubernetes-cronjob.yaml")
    assert (job["apiVersion"], job["kind"], job["spec"]["concurrencyPolicy"]) == ("batch/v1", "CronJob", "Forbid")
    pod = job["spec"]["jobTemplate"]["spec"]["template"]["spec"]
    assert pod["restartPolicy"] == "Never"  # without which there is no podFailurePolicy
    assert pod["terminationGracePeriodSeconds"] > GRACE_SECONDS + 2
    assert pod["securityContext"]["runAsNonRoot"] is True
    assert pod["securityContext"]["runAsUser"] == USER


def test_the_container_of_the_cronjob_is_shut_in_and_writes_where_it_may() -> None:
    pod = read_yaml("kubernetes-cronjob.yaml")["spec"]["jobTemplate"]["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    arguments = parse(container["args"])
    mounted = {mount["mountPath"]: mount["name"] for mount in container["volumeMounts"]}
    assert {volume["name"] for volume in pod["volumes"]} == set(mounted.values())
    assert all("emptyDir" in volume for volume in pod["volumes"])
    assert {str(Path(arguments.report).parent), str(Path(arguments.metrics).parent)} <= set(mounted)
    (temporary,) = [one["value"] for one in container["env"] if one["name"] == "TMPDIR"]
    assert temporary in mounted
    confined = container["securityContext"]
    assert confined["readOnlyRootFilesystem"] is True
    assert confined["allowPrivilegeEscalation"] is False
    assert confined["capabilities"] == {"drop": ["ALL"]}
    assert "secretRef" in container["envFrom"][0]
    assert int(container["resources"]["requests"]["cpu"]) == arguments.workers


def test_the_cronjob_is_not_repeated_for_files_that_failed() -> None:
    job = read_yaml("kubernetes-cronjob.yaml")["spec"]["jobTemplate"]["spec"]
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
    assert container["user"] == str(USER)
    (mount,) = container["mountPoints"]
    assert container["environment"] == [{"name": "TMPDIR", "value": mount["containerPath"]}]
    assert [volume["name"] for volume in container["volumes"]] == [mount["sourceVolume"]]


def test_the_job_of_aws_batch_is_repeated_unless_it_ran() -> None:
    job = json.loads((DEPLOY / "aws-batch-job-definition.json").read_text())
    rules = job["retryStrategy"]["evaluateOnExit"]
    by_code = {rule["onExitCode"]: rule["action"] for rule in rules if "onExitCode" in rule}
    assert by_code == {"143": "RETRY", "2": "RETRY", "*": "EXIT"}
    assert list(by_code)[-1] == "*"  # the first that fits counts


def test_the_schedule_of_aws_starts_that_job() -> None:
    schedule = json.loads((DEPLOY / "aws-eventbridge-schedule.json").read_text())
    job = json.loads((DEPLOY / "aws-batch-job-definition.json").read_text())
    assert json.loads(schedule["Target"]["Input"])["JobDefinition"] == job["jobDefinitionName"]
    assert re.fullmatch(r"rate\(\d+ minutes\)", schedule["ScheduleExpression"])


# --- Airflow


def calls(tree: ast.AST, name: str) -> list[dict[str, ast.expr]]:
    """The keyword arguments of all calls of a name."""
    found = [node for node in ast.walk(tree) if isinstance(node, ast.Call) and getattr(node.func, "id", "") == name]
    return [{word.arg: word.value for word in call.keywords if word.arg} for call in found]


def test_the_dag_has_commands_that_parse_and_lets_files_fail() -> None:
    tree = ast.parse((DEPLOY / "airflow_dag.py").read_text())
    constants = {
        node.targets[0].id: ast.literal_eval(node.value)
        for node in tree.body
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name)
    }
    (dag,) = calls(tree, "DAG")
    assert ast.literal_eval(dag["max_active_runs"]) == 1
    assert ast.literal_eval(dag["catchup"]) is False
    index, status = calls(tree, "BashOperator")
    assert ast.unparse(index["bash_command"]) == "f'exec {INDEX}'"
    assert ast.literal_eval(index["skip_on_exit_code"]) == 1
    for command in (constants["INDEX"], ast.literal_eval(status["bash_command"])):
        program, *words = shlex.split(command)
        assert program == "h5zarr"
        parse(words)


# --- Prometheus


def test_the_alerts_are_about_metrics_that_there_are() -> None:
    written = IndexReport().to_metrics("an index")
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
    assert set(re.findall(r"h5zarr_index_\w+", INDEXING)) <= names
