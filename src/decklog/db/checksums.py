"""The digests of the shipped migrations, by engine and name. Written by `make docs`; a test keeps them true."""

CHECKSUMS = {
    "sqlite": {
        "0001_first": "2a0f0b3e6d0a529957aadfd970ae2877056ed304edbfe62e10353d608c5e3f84",
        "0002_partitions": "7072808757b2a01304dc62e9bef8cc87d3bb5e8262a39758260cb666636e1322",
    },
    "postgres": {
        "0001_first": "305f57b413e60f1f97f38cb96487367d7e006fb9721f0d23caf2a6e10c908ab1",
        "0002_partitions": "d26460a592cd1ff9a34b71cb75bcea9a3998cc169bb97c1fe828128ff01d4485",
    },
}
