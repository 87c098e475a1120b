"""The digests of the shipped migrations, by engine and name. Written by `make docs`; a test keeps them true."""

CHECKSUMS = {
    "sqlite": {
        "0001_first": "ac6ea8b2c8a9f7bbc0e09e6f76878696f4b4048d5446ffd3cb18bdac9310626b",
    },
    "postgres": {
        "0001_first": "c2420ac584ef96d54a38ebc571db1047bb4c22ab48d8978ce160beb4fc91d467",
    },
}
