/** A reporter for vitest: the seconds of each file with its hooks, which the JSON report leaves out, into $FILE_SECONDS. */
import { writeFileSync } from 'node:fs';
import { relative } from 'node:path';

export default class FileSeconds {
  onTestRunEnd(modules) {
    const files = modules.map(module => ({
      file: relative('', module.moduleId),
      seconds: secondsOf(module),
    }));
    writeFileSync(process.env['FILE_SECONDS'], JSON.stringify(files));
  }
}

function secondsOf(module) {
  const { environmentSetupDuration, prepareDuration, collectDuration, setupDuration, duration } =
    module.diagnostic();
  return (environmentSetupDuration + prepareDuration + collectDuration + setupDuration + duration) / 1000;
}
