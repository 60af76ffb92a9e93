# A static program, certificates and an empty folder for the state; no shell, no root.
#
#     docker build --build-arg VERSION=v1.2.3 -t condense .
#     docker run --rm -p 8765:8765 -v "$PWD/condense.yaml:/etc/condense/condense.yaml:ro" -v "$PWD/tokens:/run/secrets/condense:ro" condense
#
# Without a configuration it listens on the container's loopback only.
FROM golang:1.26 AS build
WORKDIR /src
COPY go.mod go.sum ./
RUN go mod download
COPY . .
ARG VERSION=
RUN CGO_ENABLED=0 go build -trimpath -ldflags "-s -w -X github.com/condensehq/condense/cmd/condense/internal/cli.version=$VERSION" -o /out/condense ./cmd/condense \
 && mkdir -p /out/state /out/tmp && chmod 1777 /out/tmp

FROM scratch
COPY --from=build /etc/ssl/certs/ca-certificates.crt /etc/ssl/certs/
COPY --from=build --chown=65532:65532 /out/state /var/lib/condense
COPY --from=build /out/tmp /tmp
COPY --from=build /out/condense /usr/local/bin/condense
USER 65532:65532
ENV HOME=/var/lib/condense XDG_STATE_HOME=/var/lib XDG_CONFIG_HOME=/etc PATH=/usr/local/bin
WORKDIR /var/lib/condense
VOLUME /var/lib/condense
EXPOSE 8765 8766
ENTRYPOINT ["condense"]
CMD ["serve"]
