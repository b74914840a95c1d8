const UNITS: Readonly<Record<string, number>> = {
  '': 1,
  m: 1e-3,
  k: 1e3,
  K: 1e3,
  M: 1e6,
  G: 1e9,
  T: 1e12,
  Ki: 2 ** 10,
  Mi: 2 ** 20,
  Gi: 2 ** 30,
  Ti: 2 ** 40,
};

/** The number that a quantity of Kubernetes stands for, as in 500m or 4Mi; undefined for other texts. */
export function quantityOf(text: string): number | undefined {
  const [, number = '', unit = ''] = /^([0-9]{1,15})([A-Za-z]*)$/.exec(text) ?? [];
  const factor = UNITS[unit];
  return number === '' || factor === undefined ? undefined : Number(number) * factor;
}
