/** A setting whose value cannot be used; the message names it and gives a valid form. */
export class SettingError extends Error {
  readonly setting: string;

  constructor(setting: string, message: string, options?: ErrorOptions) {
    super(`${setting}: ${message}`, options);
    this.name = 'SettingError';
    this.setting = setting;
  }
}
