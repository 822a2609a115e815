"""KV chunk streaming engine (SparKV): chunks by two routes, converted and written into pages."""
