"""The digests of the shipped migrations, by engine and name. Written by `make docs`; a test keeps them true."""

CHECKSUMS = {
    "sqlite": {
        "0001_first": "303ffda4e4f4ba43b615dff47590e581f3d967a0b77451d0788cbd54a05478d6",
        "0002_partitions": "f7c80b3d0b1c8238e98fe31a6703c09667283eb32eb99a95a38765033e503105",
    },
    "postgres": {
        "0001_first": "a982b9112ce11056347f2fba8d55b8cbaee534f12dbd6b0386aa040fbcf02b97",
        "0002_partitions": "9f49ecfb41d3570c8c848cfd10e7c9fffb972ee0731f6bf47294f43e9560bbec",
    },
}
