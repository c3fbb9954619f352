# LeakLens for a class: everybody who reaches the port can use it, within the limits of assets/class.toml.
#
#   docker build -t leaklens .                                 what an NVIDIA card needs is in it: gigabytes
#   docker build -t leaklens --build-arg TORCH_INDEX=URL .     small, for a machine without a card; URL is the one
#                                                              that PyTorch's page shows for "Linux, pip, CPU"
#   docker run -p 8501:8501 -v leaklens:/data leaklens         the dashboard; --gpus all hands a card over
#   docker run -v leaklens:/data leaklens engine doctor        the command line
FROM python:3.11-slim

WORKDIR /leaklens
COPY requirements.txt .
ARG TORCH_INDEX=""
RUN pip install --no-cache-dir --disable-pip-version-check --root-user-action=ignore \
    ${TORCH_INDEX:+--extra-index-url "$TORCH_INDEX"} -r requirements.txt

COPY . .
RUN python -m compileall -q app engine \
    && useradd --uid 1000 --home-dir /data --no-create-home --shell /usr/sbin/nologin leaklens \
    && install -d -o leaklens /data

USER leaklens
ENV LEAKLENS_HOME=/data
VOLUME /data
EXPOSE 8501
HEALTHCHECK --interval=30s --timeout=5s --start-period=20s \
    CMD ["python", "-c", "from urllib.request import urlopen; urlopen('http://127.0.0.1:8501/_stcore/health', timeout=4)"]
ENTRYPOINT ["python", "-m"]
CMD ["app", "--host", "0.0.0.0", "--port", "8501"]
