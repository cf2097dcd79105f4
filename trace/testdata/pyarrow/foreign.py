"""Writes traces as other programs and older versions would, into a directory."""
import os
import random
import sys

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

out = sys.argv[1]
rnd = random.Random(1)
N = 66_000
STRINGS = ["run_id", "phase", "op_type", "symbol", "dso", "region_type"]
LAST = ["access_latency_ns", "cache_level", "numa_node", "cpu_id", "thread_id", "token_index", "context_tokens"]

addr = [rnd.randrange(1 << 47) for _ in range(N)]
data = {
    "run_id": ["r"] * N,
    "sample_id": list(range(N)),
    "timestamp_ns": sorted(rnd.randrange(1 << 40) for _ in range(N)),
    "phase": [rnd.choice([None, "generation", "weight_load"]) for _ in range(N)],
    "address": addr,
    "address_page": [a >> 12 for a in addr],
    "op_type": [rnd.choice(["load", "store"]) for _ in range(N)],
    "symbol": ["f%d" % rnd.randrange(3000) for _ in range(N)],
    "dso": [""] * N,
    "region_type": [rnd.choice(["weight", "kv_cache", "unknown"]) for _ in range(N)],
    "region_id": [rnd.randrange(300) for _ in range(N)],
    "access_latency_ns": [rnd.choice([None, rnd.randrange(1000)]) for _ in range(N)],
    "cache_level": [None] * N,
    "numa_node": [None] * N,
    "cpu_id": [rnd.randrange(64) for _ in range(N)],
    "thread_id": [4242] * N,
    "token_index": [None] * N,
    "context_tokens": [None] * N,
}
plain = pa.table(data)  # int64, and null types, as version 0.1.0 wrote them


WHOLE = {"inferred", "plain_v2_pages", "checksums"}  # more rows than a batch


def write(name, table, **options):
    if name not in WHOLE:
        table = table.slice(0, 9000)
    pq.write_table(table, "%s/%s.parquet" % (out, name), **options)


write("inferred", plain, row_group_size=100_000, compression="zstd")
write("plain_v2_pages", plain, use_dictionary=False, data_page_version="2.0", compression="snappy", data_page_size=5000)
write("plain_v1_pages", plain, use_dictionary=False, compression="gzip", row_group_size=4000, data_page_size=70_000)
write("no_compression", plain, compression="none", dictionary_pagesize_limit=2000)
write("lz4", plain, compression="lz4")
write("delta", plain, use_dictionary=False, column_encoding={
    **{n: "DELTA_BINARY_PACKED" for n in ["sample_id", "timestamp_ns", "address", "address_page", "access_latency_ns"]},
    **{n: "DELTA_LENGTH_BYTE_ARRAY" for n in STRINGS}})
write("byte_stream_split", plain, use_dictionary=False,
      column_encoding={n: "BYTE_STREAM_SPLIT" for n in ["sample_id", "timestamp_ns", "address", "region_id"]})
write("checksums", plain, write_page_checksum=True, data_page_version="2.0")
write("without_optional", plain.drop_columns(LAST))
write("extra_and_reordered", plain.select(list(reversed(plain.column_names))).append_column(
    "list", pa.array([[1, 2]] * N)).append_column("where", pa.array([{"a": 1, "b": [3]}] * N)))

t = plain
for n in STRINGS:
    t = t.set_column(t.schema.get_field_index(n), n, t[n].cast(pa.large_string()))
write("large_strings", t)
t = plain
for n in STRINGS:
    t = t.set_column(t.schema.get_field_index(n), n, t[n].dictionary_encode())
write("dictionary_type", t)
t = plain
for n in ["sample_id", "timestamp_ns", "address", "region_id", "cpu_id"]:
    t = t.set_column(t.schema.get_field_index(n), n, t[n].cast(pa.uint64()))
write("unsigned", t)
t = plain
for n in ["region_id", "cpu_id", "thread_id"]:
    t = t.set_column(t.schema.get_field_index(n), n, t[n].cast(pa.int32()))
t = t.set_column(t.schema.get_field_index("sample_id"), "sample_id", t["sample_id"].cast(pa.uint32()))
write("narrow", t)
high = [(a | 1 << 63) - (1 << 64) for a in addr]
t = plain.set_column(plain.schema.get_field_index("address"), "address", pa.array(high, pa.int64()))
write("wrapped", t)
fields = [pa.field(f.name, f.type, nullable=plain[f.name].null_count > 0) for f in plain.schema]
write("required", plain.cast(pa.schema(fields)))
# pandas makes doubles of integers with gaps.
pd.DataFrame(data).head(9000).to_parquet(out + "/pandas.parquet")

# What cannot be read as it is.
os.mkdir(out + "/odd")
three = {n: v[:3] for n, v in data.items()}


def odd(name, **columns):
    pq.write_table(pa.table({**three, **columns}), "%s/odd/%s.parquet" % (out, name))


odd("out_of_range", access_latency_ns=[1 << 32, (1 << 32) - 1, -1], cpu_id=[65535.0, 65536.0, -1.0],
    numa_node=[None, 256, 255], thread_id=[7.0, 1e300, 9.0], token_index=[float("nan")] * 3)
odd("fraction", cpu_id=[1.0, 1.5, 2.0])
odd("words", address=["0x10", "0x11", "0x12"])
odd("number", op_type=[1, 2, 3])
