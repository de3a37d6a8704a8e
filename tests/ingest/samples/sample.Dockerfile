# Builds the shop.
ARG VERSION=3
FROM python:${VERSION} AS build
ENV PATH=/opt/bin DEBUG=1
RUN make install
FROM build
COPY --from=build /a /b
