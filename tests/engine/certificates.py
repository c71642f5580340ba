"""Certificates for servers and clients of tests, by the openssl command."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping

KEYS: Mapping[str, tuple[str, ...]] = {
    "rsa 2048": ("-algorithm", "RSA", "-pkeyopt", "rsa_keygen_bits:2048"),
    "rsa 3072": ("-algorithm", "RSA", "-pkeyopt", "rsa_keygen_bits:3072"),
    "rsa 4096": ("-algorithm", "RSA", "-pkeyopt", "rsa_keygen_bits:4096"),
    "rsa-pss": ("-algorithm", "RSA-PSS", "-pkeyopt", "rsa_keygen_bits:2048"),
    "P-256": ("-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-256"),
    "P-384": ("-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-384"),
    "P-521": ("-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-521"),
    "Ed25519": ("-algorithm", "ED25519"),
}


class Authority:
    """Keys and certificates in a directory, made by the openssl command."""

    def __init__(self, directory):
        self.directory = directory
        self.openssl("genpkey", *KEYS["P-256"], "-out", "ca.key")
        self.openssl("req", "-x509", "-key", "ca.key", "-out", "ca.crt", "-days", "2", "-subj", "/CN=ca")

    def openssl(self, *words):
        subprocess.run(["openssl", *words], cwd=self.directory, check=True, capture_output=True)

    def issue(self, name, subject, kind):
        """A key NAME.key and its certificate NAME.crt."""
        self.openssl("genpkey", *KEYS[kind], "-out", f"{name}.key")
        self.openssl("req", "-new", "-key", f"{name}.key", "-out", f"{name}.csr", "-subj", subject)
        chain = ("-CA", "ca.crt", "-CAkey", "ca.key", "-CAcreateserial", "-days", "2")
        self.openssl("x509", "-req", "-in", f"{name}.csr", *chain, "-out", f"{name}.crt")
        (self.directory / f"{name}.key").chmod(0o600)
