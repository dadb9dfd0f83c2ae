# syntax=docker/dockerfile:1
# Meltano with the tap, PostgreSQL as its warehouse, dbt, and the receiver of webhooks. It holds no
# key and no state: give it the key and MELTANO_DATABASE_URI, a PostgreSQL for state.
#
#   docker build -t public-jobs .
#   docker run --rm --env-file .env public-jobs run tap-public-jobs target-postgres dbt-postgres:build
#   docker run --rm --env-file .env --entrypoint public-jobs-webhook public-jobs serve --host 0.0.0.0
FROM python:3.11.14-slim-bookworm

# All of it belongs to root, so any user can run it and none can change it. What a run writes is
# below /tmp, so the root file system may be read-only.
ENV HOME=/tmp \
    UV_TOOL_DIR=/opt/tools \
    UV_TOOL_BIN_DIR=/usr/local/bin \
    UV_COMPILE_BYTECODE=1 \
    UV_LINK_MODE=copy \
    UV_NO_CACHE=1 \
    UV_PYTHON_DOWNLOADS=never \
    DBT_POSTGRES_TARGET_PATH=/tmp/dbt \
    DBT_POSTGRES_LOG_PATH=/tmp/dbt \
    MELTANO_SEND_ANONYMOUS_USAGE_STATS=false

WORKDIR /project
RUN pip install --no-cache-dir 'uv~=0.13.0' \
 && uv tool install 'meltano[postgres]~=4.4'

COPY pyproject.toml README.md LICENSE meltano.yml ./
# uv reads the whole workspace; the sandbox itself stays out.
COPY sandbox/pyproject.toml ./sandbox/pyproject.toml
COPY tap_public_jobs ./tap_public_jobs
# The driver is for change logs in PostgreSQL.
RUN meltano install tap-public-jobs target-postgres dbt-postgres \
 && uv pip install --python .meltano/extractors/tap-public-jobs/venv -e '.[webhook]' 'psycopg[binary]' \
 && ln -s /project/.meltano/extractors/tap-public-jobs/venv/bin/public-jobs-webhook /usr/local/bin/ \
 && rm -rf .meltano/run .meltano/meltano.db /tmp/* /tmp/.[!.]* \
 && ln -s /tmp/run .meltano/run

COPY transform ./transform
COPY --chmod=555 docker-entrypoint.sh /usr/local/bin/
USER 1000:1000
ENTRYPOINT ["docker-entrypoint.sh"]
CMD ["run", "tap-public-jobs", "target-postgres", "dbt-postgres:build"]
