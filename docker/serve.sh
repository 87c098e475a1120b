#!/bin/sh
# Create or migrate the log in PostgreSQL, then serve the dashboard behind a proxy that has TLS.
set -eu
umask 077
: "${DECKLOG_DB:?set it to postgresql://USER:PASSWORD@HOST/DATABASE}"
: "${DECKLOG_WEB_PASSWORD:?set it to a password of at least 12 characters}"
printf '%s\n' "$DECKLOG_WEB_PASSWORD" > "$HOME/.decklog-web"
unset DECKLOG_WEB_PASSWORD
decklog migrate
exec decklog serve --host "${DECKLOG_WEB_HOST:-0.0.0.0}" --port "${DECKLOG_WEB_PORT:-8471}" \
    --behind-proxy "${DECKLOG_WEB_NAME:-localhost:8443}" --password-file "$HOME/.decklog-web"
