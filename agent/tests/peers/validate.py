"""Checks every line an agent sent against the protocol's own schema.

Arguments: the schema, what the client sent, what the agent sent. Prints how many
lines were checked; the first one that does not hold ends it with status 1.
"""

import json
import sys

from jsonschema import Draft202012Validator


def main():
    schema_path, sent_path, came_path = sys.argv[1:]
    with open(schema_path) as file:
        schema = json.load(file)
    kinds = {}
    for name, definition in schema["$defs"].items():
        if "x-method" in definition:
            end = next(end for end in ("Request", "Response", "Notification") if name.endswith(end))
            kinds[definition["x-method"], definition["x-side"], end] = name
    checks = {}

    def check(key, value, line):
        name = kinds.get(key)
        if name is None:
            sys.exit(f"the schema has no {key}: {line}")
        if name not in checks:
            checks[name] = Draft202012Validator(
                {"$ref": f"#/$defs/{name}", "$defs": schema["$defs"]}
            )
        for error in checks[name].iter_errors(value):
            sys.exit(f"{name}: {error.message}: {line}")

    methods = {}
    with open(sent_path) as file:
        for line in file:
            message = json.loads(line)
            if "method" in message and "id" in message:
                methods[message["id"]] = message["method"]
    count = 0
    with open(came_path) as file:
        for line in file:
            message = json.loads(line)
            if message.get("jsonrpc") != "2.0":
                sys.exit(f"not JSON-RPC 2.0: {line}")
            if "method" in message:
                method = message["method"]
                end = "Request" if "id" in message else "Notification"
                side = "protocol" if method.startswith("$/") else "client"
                check((method, side, end), message.get("params"), line)
            elif "result" in message:
                check((methods[message["id"]], "agent", "Response"), message["result"], line)
            else:
                error = message["error"]
                if not isinstance(error["code"], int) or not isinstance(error["message"], str):
                    sys.exit(f"not an error: {line}")
            count += 1
    print(count)


main()
