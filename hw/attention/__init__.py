"""Hash attention unit (DASH-KV): retrieval by code distance, exact attention over what was kept."""
