"""Artifacts: files that a run created or used, by path and digest, optionally with their bytes."""

from binascii import a2b_base64
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from hashlib import sha256
from typing import Any

from decklog.core.errors import Conflict, Invalid, NotFound
from decklog.db.where import Where
from decklog.journal.blobs import load_blob, store_blob
from decklog.records.fork_rules import ForkRule, Refer
from decklog.records.operations import reads, writes
from decklog.records.record import Page, Record
from decklog.stores import documents
from decklog.stores.base import Store
from decklog.stores.documents import parse_sha256
from decklog.stores.of_run import lock_run, next_number
from decklog.stores.results.artifacts import ArtifactContent

# Systems disagree on these types: .ts is a video for most, .rs an XML dialect.
_OURS = {
    "c": "text/x-c",
    "cfg": "text/plain",
    "cpp": "text/x-c++",
    "css": "text/css",
    "csv": "text/csv",
    "diff": "text/x-diff",
    "go": "text/x-go",
    "h": "text/x-c",
    "html": "text/html",
    "ini": "text/plain",
    "java": "text/x-java",
    "js": "text/javascript",
    "json": "application/json",
    "jsonl": "application/x-ndjson",
    "log": "text/plain",
    "md": "text/markdown",
    "patch": "text/x-diff",
    "py": "text/x-python",
    "rs": "text/x-rust",
    "sh": "application/x-sh",
    "sql": "application/sql",
    "toml": "application/toml",
    "ts": "text/typescript",
    "tsx": "text/typescript",
    "txt": "text/plain",
    "xml": "application/xml",
    "yaml": "application/yaml",
    "yml": "application/yaml",
}
UNKNOWN = "application/octet-stream"


def media_type_of(path: str, *, is_text: bool = False) -> str:
    """Guess a media type from a file extension; text with an unknown extension is `text/plain`."""
    name = path.rpartition("/")[2]
    ours = _OURS.get(name.rpartition(".")[2].lower()) if "." in name else None
    if ours is not None:
        return ours
    from mimetypes import guess_type

    return guess_type(name)[0] or ("text/plain" if is_text else UNKNOWN)


LONGEST_PATH = 4096


@dataclass(frozen=True, kw_only=True)
class Artifact(Record):
    """A file at a path; `digest` and `size` are those of its bytes as they are kept."""

    table = "artifacts"
    is_work = True
    fork = ForkRule("What was made is still there.", fields={"task_id": Refer("tasks")})
    blob_columns = ("digest",)

    id: str
    run_id: str
    number: int
    kind: str
    path: str
    media_type: str
    created_at: datetime
    task_id: str | None = None
    role: str | None = None
    digest: str | None = None
    size: int | None = None
    redacted: bool = False
    metadata: dict[str, object] = field(default_factory=dict)

    @classmethod
    def blob_digest(cls, image: Mapping[str, Any]) -> str | None:
        """Return the digest if the bytes are stored, which their size shows."""
        return None if image.get("size") is None else super().blob_digest(image)


class Artifacts(Store):
    """Records files by path and digest, and stores their bytes if given."""

    records = (Artifact,)

    @writes
    def add(
        self,
        run_id: str,
        kind: str,
        path: str,
        *,
        content: str | None = None,
        content_base64: str | None = None,
        digest: str | None = None,
        size: int | None = None,
        role: str | None = None,
        task_id: str | None = None,
        media_type: str | None = None,
        metadata: dict[str, object] | None = None,
        artifact_id: str | None = None,
        created_at: datetime | None = None,
    ) -> Artifact:
        """Record a file, with its bytes if given as text or as base64.

        The same run, path and digest return the first record. Text is redacted before it is stored.
        """
        if not kind.strip() or not path.strip() or len(path) > LONGEST_PATH:
            raise Invalid(f"an artifact needs a kind and a path of at most {LONGEST_PATH} characters", field="path")
        given = _content(content, content_base64)
        lock_run(self._db, run_id)
        fields: dict[str, Any] = {"role": role, "task_id": task_id, "metadata": metadata or {}, "size": size}
        fields |= {"digest": digest and parse_sha256(digest)} if given is None else self._keep(given, digest)
        is_text = given is not None and documents.decode_text(given) is not None
        fields["media_type"] = media_type or media_type_of(path, is_text=is_text)
        fields["created_at"] = created_at or self._now()
        artifact = self._find_or_add(
            # Without a digest the same file can't be recognized.
            lambda: self._seek_known(Artifact, artifact_id, run_id=run_id, path=path, digest=fields["digest"]),
            lambda: self._add(
                Artifact,
                id=artifact_id or self._ids.new("art"),
                run_id=run_id,
                number=next_number(self._db, Artifact, run_id),
                kind=kind,
                path=path,
                **fields,
            ),
        )
        if (artifact.run_id, artifact.path, artifact.digest) != (run_id, self._stored("path", path), fields["digest"]):
            raise Conflict(f"artifact {artifact.id} is another file, {artifact.path} of {artifact.run_id}", id=artifact.id)
        return artifact

    def _keep(self, content: bytes, digest: str | None) -> dict[str, Any]:
        """Store the bytes as a blob, text redacted; return the fields that describe them."""
        if digest is not None and parse_sha256(digest) != sha256(content).hexdigest():
            raise Invalid(f"the content has the digest {sha256(content).hexdigest()}, not {digest}", field="digest")
        kept, redacted = documents.redact(self._db, "content", content)
        return {"digest": store_blob(self._db, kept), "size": len(kept), "redacted": redacted}

    @reads
    def get(self, artifact_id: str) -> Artifact:
        """Get an artifact, without its bytes."""
        return self._fetch(Artifact, artifact_id)

    @reads
    def find(
        self,
        run_id: str | None = None,
        *,
        role: str | None = None,
        kind: str | None = None,
        path: str | None = None,
        task_id: str | None = None,
        digest: str | None = None,
        oldest_first: bool = False,
        limit: int = 20,
        after: str | None = None,
    ) -> Page[Artifact]:
        """List artifacts, newest first, without their bytes."""
        where = Where(
            Artifact, run_id=run_id, role=role, kind=kind, path=path, task_id=task_id, digest=digest and parse_sha256(digest)
        )
        order = ("number",) if run_id is not None else ("created_at", "run_id", "number")
        return self._page(Artifact, where, order=order, limit=limit, after=after, descending=not oldest_first)

    @reads
    def content(self, artifact_id: str) -> ArtifactContent:
        """Get an artifact's content: as text when it is text, and as base64 otherwise."""
        artifact = self._fetch(Artifact, artifact_id)
        content = self._bytes(artifact)
        text, encoding = documents.encode_content(content)
        return {
            "id": artifact.id,
            "path": artifact.path,
            "media_type": artifact.media_type,
            "digest": artifact.digest,
            "size": len(content),
            "encoding": encoding,
            "content": text,
        }

    def content_bytes(self, artifact_id: str) -> bytes:
        """Return an artifact's bytes: `content` for callers that want them in memory."""
        return self._db.read(lambda: self._bytes(self._fetch(Artifact, artifact_id)))

    def _bytes(self, artifact: Artifact) -> bytes:
        content = load_blob(self._db, artifact.digest) if artifact.digest else None
        if content is None:
            raise NotFound(
                f"the bytes of artifact {artifact.id} are not kept; it is the file {artifact.path}",
                id=artifact.id,
                path=artifact.path,
            )
        return content


def _content(text: str | None, encoded: str | None) -> bytes | None:
    """Return the bytes that were given as text or as base64."""
    if text is not None and encoded is not None:
        raise Invalid("give content or content_base64, not both", field="content")
    try:
        if encoded is not None:
            return a2b_base64(encoded, strict_mode=True)
        return None if text is None else text.encode()
    except ValueError:
        field = "content" if encoded is None else "content_base64"
        raise Invalid(f"{field} can't be read: it is not {'UTF-8' if encoded is None else 'base64'}", field=field) from None
