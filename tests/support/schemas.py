# Prints each error of documents: triples of a name, a schema and a document on standard input.
import json
import sys

try:
    import jsonschema
except ImportError:
    sys.exit(77)


def closed(schema):
    """The schema without room for fields that it does not describe."""
    if isinstance(schema, list):
        return [closed(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    schema = {key: closed(value) for key, value in schema.items()}
    if "properties" in schema and isinstance(schema.get("type"), str):
        schema.setdefault("additionalProperties", False)
    return schema


for name, schema, document in json.load(sys.stdin):
    validator = jsonschema.Draft202012Validator
    validator.check_schema(schema)
    for error in validator(closed(schema)).iter_errors(document):
        place = "/".join(str(part) for part in error.absolute_path)
        print(f"{name}: {place}: {error.message[:500]}")
