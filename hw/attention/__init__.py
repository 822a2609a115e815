"""Hash attention unit (DASH-KV): retrieval by code distance, paged fetch, exact attention over what was kept."""
