"""Says what pyarrow finds in Parquet files: one JSON line a file."""
import json
import sys

import pyarrow.parquet as pq


def text(v):
    if v is None or v != v:
        return "null"
    if isinstance(v, str):
        return "=" + v
    return str(int(v)) if isinstance(v, (int, float)) else str(v)


for path in sys.argv[1:]:
    f = pq.ParquetFile(path, page_checksum_verification=True)
    table = f.read()
    meta = f.metadata
    print(json.dumps({
        "path": path,
        "rows": meta.num_rows,
        "groups": meta.num_row_groups,
        "fields": [[s.name, str(s.type)] for s in f.schema_arrow],
        "nullable": all(s.nullable for s in f.schema_arrow),
        "version": (table.schema.metadata or {}).get(b"mrm_trace_schema_version", b"").decode(),
        "columns": {n: [text(v) for v in table[n].to_pylist()] for n in table.column_names},
        "stats": {
            meta.row_group(0).column(i).path_in_schema: [
                str(st.min) if st.has_min_max else None,
                str(st.max) if st.has_min_max else None,
                st.null_count,
            ]
            for i in range(meta.num_columns)
            if meta.num_row_groups and (st := meta.row_group(0).column(i).statistics) is not None
        },
    }))
