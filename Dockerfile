# Both programs in one image: ingot is what it runs; metalprobe is there to be
# copied into the image that servers boot for discovery and cleanup.
FROM --platform=$BUILDPLATFORM golang:1.26 AS build
WORKDIR /src
COPY go.mod go.sum ./
RUN go mod download
COPY . .
ARG VERSION=dev
ARG TARGETOS
ARG TARGETARCH
RUN mkdir -p /out/state && \
    CGO_ENABLED=0 GOOS=$TARGETOS GOARCH=$TARGETARCH \
    go build -trimpath -ldflags "-s -w -X main.version=${VERSION}" -o /out/ ./cmd/ingot ./cmd/metalprobe

FROM gcr.io/distroless/static-debian12:nonroot
ARG VERSION=dev
LABEL org.opencontainers.image.title="ingot" \
      org.opencontainers.image.description="Runs bare metal from a Git repository, without Kubernetes" \
      org.opencontainers.image.version="${VERSION}" \
      org.opencontainers.image.licenses="Apache-2.0"
COPY --from=build /out/ingot /out/metalprobe /usr/bin/
COPY --from=build --chown=nonroot:nonroot /out/state /var/lib/ingot
VOLUME /var/lib/ingot
EXPOSE 8080 8082 10000
ENTRYPOINT ["/usr/bin/ingot"]
