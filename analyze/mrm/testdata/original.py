"""Runs mrm-trace's own analysers: for each trace.parquet named, a line of JSON with
its tables, metrics.csv and the seconds that compute_all took.

Times are made signed first: with the unsigned ones of the file mrm-trace gives
negative retention where a region is read before it is written."""

import json
import math
import sys
import time

import pandas as pd
from mrm_trace.analyser import compute_all
from mrm_trace.reporter.metrics_csv import build_metrics_table
from mrm_trace.schema_version import check_parquet_schema


def value(v, column):
    if v is None or v is pd.NA or (isinstance(v, float) and math.isnan(v)):
        return None
    v = v.item() if hasattr(v, "item") else v
    return int(v) if column == "region_id" else v


def table(frame):
    columns = list(frame.columns)
    rows = [[value(v, c) for v, c in zip(row, columns)] for row in frame.itertuples(index=False, name=None)]
    return {"columns": columns, "rows": rows}


for path in sys.argv[1:]:
    check_parquet_schema(path, "trace")
    trace = pd.read_parquet(path)
    trace["timestamp_ns"] = trace["timestamp_ns"].astype("int64")
    begun = time.perf_counter()
    tables = compute_all(trace)
    seconds = time.perf_counter() - begun
    out = {name: table(frame) for name, frame in tables.items()}
    out["metrics_csv"] = build_metrics_table(tables).to_csv(index=False)
    print(json.dumps({"seconds": seconds, "tables": out}))
