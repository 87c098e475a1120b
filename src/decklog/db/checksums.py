"""The digests of the shipped migrations, by engine and name. Written by `make docs`; a test keeps them true."""

CHECKSUMS = {
    "sqlite": {
        "0001_first": "ba3395b39998a04f1302ccd36ca1668d416cd842afe6bc2c0e3851fc2ab04ba1",
    },
    "postgres": {
        "0001_first": "adc43ff4a23f0bc598fe6a57aab43aa5f410519ef390712d77c1105be5351fc5",
    },
}
