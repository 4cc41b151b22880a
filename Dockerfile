# A server of models, without GPUs: docker build -t bertrand . && docker run -p 8501:8501 -v /srv/models:/models bertrand --model /models/reviews
# The other programs are in it too: docker run --entrypoint bertrand-pretrain bertrand --help
FROM debian:12-slim AS build
COPY . /source
WORKDIR /source
RUN scripts/install-packages.sh
RUN cmake -C packaging/hardened.cmake -S . -B /build -G Ninja -DCMAKE_BUILD_TYPE=Release -DCMAKE_INSTALL_PREFIX=/usr -DBERTRAND_CUDA=OFF -DBERTRAND_TESTS=OFF -DBERTRAND_EXAMPLES=OFF
RUN cmake --build /build
RUN DESTDIR=/installed cmake --install /build --strip --component bertrand

FROM debian:12-slim
RUN apt-get update && apt-get install -y --no-install-recommends libfmt9 libutf8proc2 zlib1g libicu72 libopenmpi3 && rm -rf /var/lib/apt/lists/*
COPY --from=build /installed /
RUN useradd --system --uid 10001 --no-create-home bertrand
USER 10001
EXPOSE 8501
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=10s --timeout=6s --start-period=60s CMD ["bertrand-serve", "--check", "http://127.0.0.1:8501"]
# Flags of docker run are added. Inside a container every address is that of the container.
ENTRYPOINT ["bertrand-serve", "--host", "0.0.0.0"]
