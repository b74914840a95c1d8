# One image for the operator, the extension server and the relay: docker build -t mesh-gateway:0.1.0 . and the argument is the command.
FROM node:24-bookworm-slim AS build
WORKDIR /build
RUN apt-get update && apt-get install -y --no-install-recommends ca-certificates
COPY package.json package-lock.json .npmrc ./
RUN npm ci --ignore-scripts --no-fund --no-audit
COPY . .
RUN npm run build && npm run image -- /image

# Nothing but Node, the libraries that it needs, and the product: no shell, no package manager, and nobody's files to write to.
FROM scratch
COPY --from=build /image /
ENV PATH=/usr/local/bin
# These keep memory small (docs/dependencies.md): freed buffers return to the system, V8 keeps a small young generation, and it
# collects the old one when that has grown by 60 %.
ENV MALLOC_MMAP_THRESHOLD_=32768
USER 65532:65532
ENTRYPOINT ["/usr/local/bin/node", "--max-semi-space-size=4", "--heap-growing-percent=50", "/app/dist/js/cli.js"]
