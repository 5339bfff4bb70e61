def resolve_query_version(system, backend, version):
    return "0.24.0"
