//! The toolchains that people have in their home, and the names of credentials inside them.

/// A toolchain by its usual place.
pub(super) struct Family {
    /// Relative to the home. A `PATH` entry in it makes it visible.
    pub(super) tree: &'static str,
    /// What it cannot work without, relative to the home.
    pub(super) with: &'static [&'static str],
}

const fn alone(tree: &'static str) -> Family {
    Family { tree, with: &[] }
}

/// Whole trees. Of nested ones the deepest that contains the entry counts.
pub(super) const FAMILIES: &[Family] = &[
    // Rust, and what rustup proxies are made of.
    Family {
        tree: ".cargo",
        with: &[".rustup"],
    },
    Family {
        tree: ".rustup",
        with: &[".cargo"],
    },
    // Python.
    alone(".pyenv"),
    alone(".rye"),
    alone(".pixi"),
    alone(".conda"),
    alone("anaconda"),
    alone("anaconda3"),
    alone("mambaforge"),
    alone("micromamba"),
    alone("miniconda"),
    alone("miniconda3"),
    alone("miniforge"),
    alone("miniforge3"),
    // JavaScript.
    alone(".bun"),
    alone(".deno"),
    alone(".fnm"),
    alone(".nodenv"),
    alone(".npm-global"),
    alone(".npm-packages"),
    alone(".nvm"),
    alone(".volta"),
    alone(".yarn"),
    alone(".config/yarn/global"),
    alone("n"),
    // Go.
    alone("go"),
    alone(".goenv"),
    alone(".gvm"),
    // Java and its neighbours.
    alone(".jenv"),
    alone(".sdkman"),
    // Ruby, PHP, Perl.
    alone(".gem/ruby"),
    alone(".rbenv"),
    alone(".rvm"),
    alone(".phpenv"),
    alone(".config/composer/vendor"),
    alone(".composer/vendor"),
    alone("perl5"),
    // Others.
    alone(".asdf"),
    alone(".cabal"),
    alone(".dotnet"),
    alone(".elan"),
    alone(".fzf"),
    alone(".ghcup"),
    alone(".juliaup"),
    alone(".krew"),
    alone(".linuxbrew"),
    alone(".nix-profile"),
    alone(".opam"),
    alone(".proto"),
    alone(".pub-cache"),
    alone(".swiftly"),
    alone(".wasmer"),
    alone(".wasmtime"),
    alone("bin"),
    alone("flutter"),
    alone("google-cloud-sdk"),
];

/// Below `.local`, where programs and private data lie side by side: only these are ever shown, each when it exists.
/// Keyrings and application data are not among them.
pub(super) const LOCAL: &[&str] = &[
    ".local/bin",
    ".local/lib",
    ".local/lib64",
    ".local/libexec",
    ".local/pipx",
    ".local/share/fnm",
    ".local/share/gem",
    ".local/share/mise",
    ".local/share/nvm",
    ".local/share/pipx",
    ".local/share/pnpm",
    ".local/share/rtx",
    ".local/share/uv",
    ".local/share/virtualenvs",
];

/// Variables that say where a toolchain lies when it is not in its usual place. `GOPATH` holds a list.
pub const VARIABLES: &[&str] = &[
    "ANDROID_HOME",
    "ANDROID_SDK_ROOT",
    "ASDF_DATA_DIR",
    "ASDF_DIR",
    "BUN_INSTALL",
    "CARGO_HOME",
    "CONDA_PREFIX",
    "DENO_INSTALL",
    "DENO_INSTALL_ROOT",
    "DOTNET_ROOT",
    "FNM_DIR",
    "GEM_HOME",
    "GHCUP_INSTALL_BASE_PREFIX",
    "GOENV_ROOT",
    "GOPATH",
    "GOROOT",
    "JAVA_HOME",
    "MAMBA_ROOT_PREFIX",
    "MISE_DATA_DIR",
    "NODENV_ROOT",
    "NVM_DIR",
    "N_PREFIX",
    "OPAMROOT",
    "PIPX_HOME",
    "PIXI_HOME",
    "PNPM_HOME",
    "PYENV_ROOT",
    "RBENV_ROOT",
    "RUSTUP_HOME",
    "RYE_HOME",
    "SDKMAN_DIR",
    "UV_PYTHON_INSTALL_DIR",
    "UV_TOOL_DIR",
    "VOLTA_HOME",
];

/// Folders whose direct children belong to different programs or to the person: none of them is ever a tree, because a
/// tool needs at most one child.
pub(super) const SHARED: &[&str] = &[
    ".cache",
    ".config",
    ".local",
    ".local/share",
    ".local/state",
    ".var",
    "Desktop",
    "Documents",
    "Downloads",
    "snap",
    "src",
];

/// Nothing in them is ever shown, whatever leads there.
pub(super) const PRIVATE: &[&str] = &[
    ".aws",
    ".azure",
    ".config/gcloud",
    ".config/gh",
    ".config/pinfold",
    ".docker",
    ".gnupg",
    ".kube",
    ".local/share/keyrings",
    ".local/share/pinfold",
    ".local/state/pinfold",
    ".mozilla",
    ".password-store",
    ".ssh",
];

/// Files and folders in the root of a tree that hold credentials; compared without regard to case.
pub(super) const CREDENTIALS: &[&str] = &[
    ".aws",
    ".credentials",
    ".credentials.json",
    ".dockercfg",
    ".env",
    ".git-credentials",
    ".gnupg",
    ".htpasswd",
    ".my.cnf",
    ".netrc",
    ".npmrc",
    ".pgpass",
    ".pypirc",
    ".secrets",
    ".ssh",
    ".token",
    ".yarnrc.yml",
    "_netrc",
    "application_default_credentials.json",
    "auth.json",
    "auth.toml",
    "auth.yaml",
    "auth.yml",
    "credentials",
    "credentials.db",
    "credentials.json",
    "credentials.toml",
    "credentials.yaml",
    "credentials.yml",
    "hosts.yaml",
    "hosts.yml",
    "id_dsa",
    "id_ecdsa",
    "id_ed25519",
    "id_rsa",
    "keyring",
    "keyrings",
    "keystore",
    "keystores",
    "pub-credentials.json",
    "secret",
    "secrets",
    "secrets.json",
    "secrets.toml",
    "token",
    "token.json",
    "tokens",
    "tokens.json",
];
