# syntax=docker/dockerfile:1
# Meltano with the tap and its warehouses installed. It holds no key: give it in the environment.
#
#   docker build -t public-jobs .
#   docker run --rm --env-file .env public-jobs run tap-public-jobs target-postgres
FROM python:3.11-slim-bookworm

RUN pip install --no-cache-dir 'uv~=0.13.0' \
 && groupadd --gid 1000 meltano \
 && useradd --uid 1000 --gid meltano --create-home --shell /usr/sbin/nologin meltano \
 && install -d -o meltano -g meltano /project

ENV PATH=/home/meltano/.local/bin:$PATH \
    UV_COMPILE_BYTECODE=1 \
    UV_LINK_MODE=copy \
    UV_NO_CACHE=1 \
    UV_PYTHON_DOWNLOADS=never \
    MELTANO_SEND_ANONYMOUS_USAGE_STATS=false

USER 1000:1000
WORKDIR /project
RUN uv tool install --no-cache 'meltano[postgres]~=4.4'

COPY --chown=meltano:meltano pyproject.toml README.md LICENSE meltano.yml ./
# uv reads the whole workspace; the sandbox itself stays out.
COPY --chown=meltano:meltano sandbox/pyproject.toml ./sandbox/pyproject.toml
COPY --chown=meltano:meltano tap_public_jobs ./tap_public_jobs
COPY --chown=meltano:meltano output/.gitkeep ./output/.gitkeep
RUN meltano install tap-public-jobs target-postgres target-duckdb target-jsonl

COPY --chown=meltano:meltano --chmod=555 docker-entrypoint.sh /usr/local/bin/
ENTRYPOINT ["docker-entrypoint.sh"]
CMD ["run", "tap-public-jobs", "target-postgres"]
