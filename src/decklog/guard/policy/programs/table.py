"""The table of special checks, by the kind of program or the role of a word."""

from functools import cache
from importlib import import_module

from decklog.guard.policy.programs.use import Check

# A command needs one or two of the modules with checks: each is loaded when it is first needed.
_CHECKS = {
    "argv": "wrappers.check_argv",
    "applet": "wrappers.check_argv",
    "shell-line": "wrappers.check_shell",
    "environment": "wrappers.check_environment",
    "xargs": "wrappers.check_xargs",
    "cd": "builtins.check_cd",
    "set": "builtins.check_set",
    "read": "builtins.check_read",
    "find": "wrappers.check_find",
    "fd": "wrappers.check_fd",
    "script": "wrappers.check_script",
    "trap": "wrappers.check_trap",
    "alias": "wrappers.check_alias",
    "package-runner": "wrappers.check_package_runner",
    "image-build": "wrappers.check_build",
    "image": "wrappers.check_image",
    "container": "wrappers.check_container",
    "runner": "wrappers.check_runner",
    "packages": "wrappers.check_packages",
    "shell": "interpreters.check_shell_program",
    "python": "interpreters.check_python",
    "code": "interpreters.check_code_program",
    "query": "interpreters.check_query",
    "debugger": "interpreters.check_debugger",
    "source": "interpreters.check_source",
    "code python": "interpreters.check_python_text",
    "code other": "interpreters.check_other_text",
    "git": "git.check_git",
    "network": "network.check_network",
    "lookup": "network.check_lookup",
    "sockets": "network.check_sockets",
    "remote": "network.check_remote",
    "role code-or-file": "interpreters.check_code_or_file",
    "role snippet": "interpreters.check_other_text",
    "role url": "network.check_url",
    "role socket": "network.check_socket",
    "role data": "network.check_data",
    "role statement": "sql.check_statements",
    "role mode": "files.check_mode",
    "role value": "roles.check_value",
    "role load": "roles.check_load",
    "role place": "roles.check_load",
    "role subject": "roles.check_subject",
    "role host": "roles.check_host",
    "role search-path": "roles.check_search_path",
    "role settings": "roles.check_settings",
    "role assignment": "roles.check_assignment",
    "dd": "files.check_dd",
    "compiler": "files.check_compiler",
    "tar": "files.check_tar",
    "openssl": "files.check_openssl",
    "sed": "editors.check_sed",
    "editor": "editors.check_editor",
    "awk": "awk.check_awk",
    "sql": "sql.check_sql",
    "jq": "files.check_jq",
    "dc": "files.check_dc",
    "mlr": "files.check_mlr",
    "xml": "files.check_xml",
    "cmake": "builds.targets.check_cmake",
    "targets": "builds.targets.check_targets",
    "scripts": "builds.targets.check_targets",
    "written": "builds.written.check_written",
    "kill": "processes.check_kill",
    "decklog": "own.check_decklog",
}
KINDS = frozenset(_CHECKS)


@cache
def check_of(kind: str) -> Check | None:
    """Give the special check of a kind of program or a role, None if it has none."""
    named = _CHECKS.get(kind)
    if named is None:
        return None
    module, _, check = named.rpartition(".")
    found: Check = getattr(import_module(f"decklog.guard.policy.programs.{module}"), check)
    return found
