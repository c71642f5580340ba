"""`metrics` of a given server: where its provider's own monitoring knows it."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

from pgtrial.study.units import as_list


class ProviderMetrics(BaseModel):
    """What to import beside the lab's own observation."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    cloudwatch: Annotated[list[Annotated[str, Field(min_length=1)]], BeforeValidator(as_list)] = Field(
        min_length=1,
        description="The DB instance identifier under which Amazon CloudWatch has the server (AWS/RDS); of several "
        "deployments a list, in the order of `dsn`.",
    )
    region: str | None = Field(
        None, description="Its AWS region, `eu-west-1`; default: that of the AWS environment (AWS_REGION, profile)."
    )
