"""Reads the metrics of an RDS or Aurora instance from Amazon CloudWatch, over a given period.

The names of the metrics are those of the namespace AWS/RDS in the Amazon RDS User Guide ("Amazon CloudWatch
instance-level metrics") and the Aurora User Guide. This module connects to no server and changes nothing in the
account: it only calls GetMetricData.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from pgtrial.model.errors import PgtrialError, one_line
from pgtrial.model.resources import table

SOURCE = "cloudwatch"

UNITS: dict[str, str] = table("cloudwatch.toml", __package__)
"""The metrics to read, with their units. Metrics that show the limits of a server come first. An instance provides only
some of these metrics; the others are left out."""

_RETENTION = ((timedelta(days=15), 60), (timedelta(days=63), 300))
"""Pairs of an age and of the resolution, in seconds, at which CloudWatch keeps values up to this age. For older times
only one value per hour is kept (GetMetricData, Period)."""
_OLDEST_PERIOD_S = 3600


class MetricsError(PgtrialError):
    """The error for metrics of a provider that could not be read. The study continues without these metrics; the user
    can import them later."""


@dataclass(frozen=True)
class Value:
    """The mean of one metric of CloudWatch over a period of `span_s` seconds, which begins at `since` (UTC)."""

    since: datetime
    span_s: int
    name: str
    value: float


class CloudWatch:
    """Reads the metrics of the RDS or Aurora instances that are the servers of an arm. Raises MetricsError if boto3 is
    not installed or no region is known."""

    def __init__(self, arm: str, instances: Sequence[str], region: str | None):
        self._arm = arm
        self._instances = instances
        self.names = " and ".join(instances)
        try:
            # only users who import metrics need boto3, and its import takes time
            import boto3  # noqa: PLC0415
            from botocore.config import Config  # noqa: PLC0415
            from botocore.exceptions import BotoCoreError, ClientError  # noqa: PLC0415
        except ImportError:
            raise MetricsError(
                f"arms.{arm}: metrics of CloudWatch need boto3; install it with: pip install 'pgtrial[aws]'"
            ) from None
        self._errors: tuple[type[Exception], ...] = (BotoCoreError, ClientError)
        try:
            session = boto3.Session()
            # boto3 reads AWS_DEFAULT_REGION and the profile, but not AWS_REGION, which other tools of AWS read
            self.region = region or os.environ.get("AWS_REGION") or session.region_name
            if not self.region:
                raise MetricsError(
                    f"arms.{arm}: no AWS region is known for the metrics of {self.names}; set monitoring.region or the "
                    "variable AWS_REGION"
                )
            config = Config(connect_timeout=10, read_timeout=30, retries={"mode": "standard"})
            self._client: Any = session.client("cloudwatch", region_name=self.region, config=config)
        except self._errors as error:
            raise self._refused(error) from None

    def values(self, deployment: int, begin: datetime, end: datetime, now: datetime) -> list[Value]:
        """Returns all values of one of the arm's instances, the one with the number `deployment`, counted from 0, whose
        period overlaps the time from `begin` to `end`, in the finest resolution that CloudWatch still keeps.

        `now` is the present time, which decides what CloudWatch still keeps. Raises MetricsError if CloudWatch rejects
        the request or does not answer.
        """
        period = _period(now - begin)
        asked = list(UNITS)
        queries = [_query(self._instances[deployment], number, name, period) for number, name in enumerate(asked)]
        values = []
        try:
            pages = self._client.get_paginator("get_metric_data").paginate(
                MetricDataQueries=queries, StartTime=_floor(begin, period), EndTime=end, ScanBy="TimestampAscending"
            )
            for result in pages.search("MetricDataResults[]"):
                name = asked[int(result["Id"][1:])]
                for since, value in zip(result["Timestamps"], result["Values"], strict=True):
                    values.append(Value(since.astimezone(UTC), period, name, float(value)))
        except self._errors as error:
            raise self._refused(error) from None
        return sorted(values, key=lambda value: (value.since, asked.index(value.name)))

    def _refused(self, error: Exception) -> MetricsError:
        words = one_line(error).rstrip(".")
        credentials = ("NoCredentialsError", "PartialCredentialsError", "ProfileNotFound")
        if type(error).__name__ in credentials or "oken" in words:
            cure = "set AWS_PROFILE, or AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY"
        elif "AccessDenied" in words or "not authorized" in words:
            cure = "allow cloudwatch:GetMetricData"
        else:
            cure = "check monitoring.region and the network"
        return MetricsError(f"arms.{self._arm}: CloudWatch returned no metrics of {self.names}: {words}; {cure}")


def _query(instance: str, number: int, name: str, period: int) -> dict[str, Any]:
    dimensions = [{"Name": "DBInstanceIdentifier", "Value": instance}]
    metric = {"Namespace": "AWS/RDS", "MetricName": name, "Dimensions": dimensions}
    return {"Id": f"m{number}", "MetricStat": {"Metric": metric, "Period": period, "Stat": "Average"}}


def _period(age: timedelta) -> int:
    return next((period for oldest, period in _RETENTION if age < oldest), _OLDEST_PERIOD_S)


def _floor(moment: datetime, period: int) -> datetime:
    """Returns the beginning of the period that contains a moment; `period` is in seconds."""
    seconds = int(moment.timestamp())
    return datetime.fromtimestamp(seconds - seconds % period, UTC)
