# docker build -t baselines . && docker run -v ~/logs:/logs baselines run --alg=a2c ...
# On a machine with a GPU: docker build --build-arg EXTRAS=plot,cuda, docker run --gpus=all
FROM python:3.12-slim
ARG EXTRAS=plot,play,video
WORKDIR /src
COPY pyproject.toml setup.py README.md LICENSE ./
COPY baselines baselines
RUN pip install --no-cache-dir ".[$EXTRAS]"
WORKDIR /logs
ENTRYPOINT ["baselines"]
