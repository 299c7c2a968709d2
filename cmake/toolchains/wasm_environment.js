// The program sees the environment variables of the process, which Emscripten leaves out.
Module['preRun'] = (Module['preRun'] || []).concat(() => {
  if (!ENVIRONMENT_IS_PTHREAD) Object.assign(ENV, process.env);
});
