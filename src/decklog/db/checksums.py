"""The digests of the shipped migrations, by engine and name. Written by `make docs`; a test keeps them true."""

CHECKSUMS = {
    "sqlite": {
        "0001_first": "ba3395b39998a04f1302ccd36ca1668d416cd842afe6bc2c0e3851fc2ab04ba1",
    },
    "postgres": {
        "0001_first": "2b67629514a32f1e59dac9ed67df5533323259b34ceb28ad026cab172e4da2c1",
    },
}
