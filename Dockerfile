# The dashboard with PostgreSQL. `docker compose up` starts it with a database and a TLS proxy; see compose.yaml.
FROM python:3.13-slim
COPY pyproject.toml README.md LICENSE /src/
COPY docs/decklog.1 /src/docs/decklog.1
COPY src /src/src
RUN pip install --no-cache-dir '/src[postgres,web]' && rm -rf /src
COPY --chmod=755 docker/serve.sh /usr/local/bin/decklog-serve
RUN useradd --create-home decklog
USER decklog
WORKDIR /home/decklog
EXPOSE 8471
ENTRYPOINT []
CMD ["decklog-serve"]
