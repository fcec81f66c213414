#!/usr/bin/env bash
# All checks of the project: formatting, lints, documentation, tests. Needs Rust; on Debian and Ubuntu it installs a C
# linker and, where no Vulkan driver is found, Mesa's software driver, so that the GPU tests run everywhere.
set -euo pipefail
cd "$(dirname "$0")"

as_root() { if [ "$(id -u)" = 0 ]; then "$@"; else sudo "$@"; fi; }

install_packages() {
  if ! command -v apt-get >/dev/null; then
    echo "test.sh: please install $* with this system's package manager" >&2
    return 0
  fi
  as_root apt-get update -qq
  as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "$@"
}

vulkan_driver_found() {
  ldconfig -p | grep -q 'libvulkan\.so\.1' || return 1
  local pattern
  for pattern in '/usr/share/vulkan/icd.d/*.json' '/etc/vulkan/icd.d/*.json' "${VK_DRIVER_FILES:-/nowhere}"; do
    if compgen -G "$pattern" >/dev/null; then return 0; fi
  done
  return 1
}

if ! command -v cargo >/dev/null; then
  echo "test.sh: cargo is not on the PATH; install Rust from https://rustup.rs" >&2
  exit 1
fi
command -v cc >/dev/null || install_packages gcc libc6-dev
if [ "$(uname)" = Linux ] && ! vulkan_driver_found; then
  install_packages libvulkan1 mesa-vulkan-drivers
fi
# Implicit Vulkan layers serve displays; here they only add noise to the output.
export VK_LOADER_LAYERS_DISABLE="${VK_LOADER_LAYERS_DISABLE:-~implicit~}"

cargo fmt --check
cargo clippy --locked --all-targets -- -D warnings
RUSTDOCFLAGS="-D warnings" cargo doc --locked --no-deps --document-private-items --all-features
cargo test --locked --no-fail-fast --all-features
