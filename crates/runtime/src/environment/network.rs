//! Variables that lead tools to the proxy and to the roots they have to trust.

use std::ffi::{OsStr, OsString};
use std::path::Path;

use pinfold_model::plan::Listeners;

use super::{Variables, set_default};

/// Read as a URL. curl reads `http_proxy` in lower case only, others read upper case only. `ALL_PROXY` is an HTTP URL
/// as well: clients without a SOCKS extra stop at `socks5h://`. Yarn 2 and later read their own names only.
const PROXY_URLS: &[&str] = &[
    "ALL_PROXY",
    "GRPC_PROXY",
    "HTTPS_PROXY",
    "HTTP_PROXY",
    "YARN_HTTPS_PROXY",
    "YARN_HTTP_PROXY",
    "all_proxy",
    "grpc_proxy",
    "http_proxy",
    "https_proxy",
];

/// Loopback only: private ranges here would keep permitted intranet hosts from the only way out.
const NOT_PROXIED: &str = "localhost,127.0.0.1,::1";

/// Name a file with roots, each for the tools beside it.
const ROOT_FILES: &[&str] = &[
    "AWS_CA_BUNDLE",
    "BUNDLE_SSL_CA_CERT",
    "CARGO_HTTP_CAINFO",
    "CLOUDSDK_CORE_CUSTOM_CA_CERTS_FILE",
    "CURL_CA_BUNDLE",
    "DENO_CERT",
    "GIT_SSL_CAINFO",
    "GRPC_DEFAULT_SSL_ROOTS_FILE_PATH",
    "NIX_SSL_CERT_FILE",
    "NPM_CONFIG_CAFILE",
    "PIP_CERT",
    "REQUESTS_CA_BUNDLE",
    "SSL_CERT_FILE",
];

pub(super) const NODE_EXTRA_ROOTS: &str = "NODE_EXTRA_CA_CERTS";

/// The caller's own proxies cannot be reached from inside, so a passed value gives way.
pub(super) fn proxies(variables: &mut Variables, listeners: Listeners) {
    let Listeners { http, .. } = listeners;
    let mut set = |name: &str, value: OsString| variables.insert(name.into(), value);
    for name in PROXY_URLS {
        set(name, format!("http://127.0.0.1:{http}").into());
    }
    set("NO_PROXY", NOT_PROXIED.into());
    set("no_proxy", NOT_PROXIED.into());
    // Host and port, not a URL (rsync(1)).
    set("RSYNC_PROXY", format!("127.0.0.1:{http}").into());
    // Without it the fetch and http of Node do not look at proxy variables.
    set("NODE_USE_ENV_PROXY", "1".into());
    let java = format!(
        "-Dhttp.proxyHost=127.0.0.1 -Dhttp.proxyPort={http} -Dhttps.proxyHost=127.0.0.1 -Dhttps.proxyPort={http}"
    );
    java_options(variables, &java);
}

/// A passed value stays: the person's own bundle knows roots that ours may not.
///
/// Node reads its extra roots at every start, which takes longer than the start itself, so `node` says whether the
/// caller has some.
pub(super) fn trust(variables: &mut Variables, roots: Option<&Path>, java_roots: Option<&Path>, node: bool) {
    if let Some(roots) = roots {
        if node {
            set_default(variables, NODE_EXTRA_ROOTS, roots.as_os_str());
        }
        for name in ROOT_FILES {
            set_default(variables, name, roots.as_os_str());
        }
        set_default(variables, "UV_NATIVE_TLS", OsStr::new("1"));
    }
    if let Some(store) = java_roots
        .and_then(Path::to_str)
        .filter(|store| !store.contains(char::is_whitespace))
    {
        java_options(variables, &format!("-Djavax.net.ssl.trustStore={store}"));
    }
}

/// Puts options in front of the ones already there: the virtual machine takes the last of two equal ones.
fn java_options(variables: &mut Variables, options: &str) {
    let mut value = OsString::from(options);
    if let Some(given) = variables
        .get(OsStr::new("JAVA_TOOL_OPTIONS"))
        .filter(|given| !given.is_empty())
    {
        value.push(" ");
        value.push(given);
    }
    variables.insert("JAVA_TOOL_OPTIONS".into(), value);
}
