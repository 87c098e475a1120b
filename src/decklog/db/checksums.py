"""The digests of the shipped migrations, by engine and name. Written by `make docs`; a test keeps them true."""

CHECKSUMS = {
    "sqlite": {
        "0001_first": "ba3395b39998a04f1302ccd36ca1668d416cd842afe6bc2c0e3851fc2ab04ba1",
        "0002_partitions": "4a23cffcc9c9055f8b810c7c08ee0b980d9c8cbd46e0c912f2d1b5cde57a03a2",
    },
    "postgres": {
        "0001_first": "2b67629514a32f1e59dac9ed67df5533323259b34ceb28ad026cab172e4da2c1",
        "0002_partitions": "5a85407c4d52440f9794f6d5d053243f300e597076a3ffeef41702893cfcc207",
    },
}
