// SPDX-License-Identifier: Apache-2.0
// Passes the environment variables of the process to the program; Emscripten does not.
Module['preRun'] = (Module['preRun'] || []).concat(() => {
  if (!ENVIRONMENT_IS_PTHREAD) Object.assign(ENV, process.env);
});
