// SPDX-License-Identifier: Apache-2.0
// Links libtocsin-c of the folder TOCSIN_C_FOLDER, or the one that the system has.
fn main() {
    println!("cargo:rerun-if-env-changed=TOCSIN_C_FOLDER");
    if let Ok(folder) = std::env::var("TOCSIN_C_FOLDER") {
        println!("cargo:rustc-link-search=native={folder}");
        println!("cargo:rustc-link-arg=-Wl,-rpath,{folder}");
    }
    println!("cargo:rustc-link-lib=dylib=tocsin-c");
}
