import { mkdirSync, readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { markUsed } from '../../lab/parts/locate.ts';
import { sweep } from '../../lab/parts/sweep.ts';
import { emptyFolder, missingPart } from './sample.ts';

const DAY_MS = 24 * 60 * 60 * 1000;

it('removes other versions of a part that were not used for 30 days, and nothing else', () => {
  const cache = emptyFolder();
  const now = new Date('2026-03-01T00:00:00Z');
  const shop = missingPart(cache, 'shop', ['till']);
  const addFolder = (name: string, usedDaysAgo: number) => {
    mkdirSync(join(cache, name));
    writeFileSync(join(cache, name, 'content'), '');
    markUsed({ folder: join(cache, name) }, new Date(now.getTime() - usedDaysAgo * DAY_MS));
  };
  addFolder('shop-0123456789abcdef', 100);
  addFolder('shop-1111111111111111', 29);
  addFolder('shop-2222222222222222', 31);
  addFolder('shop-3333333333333333.unfinished', 31);
  addFolder('shop-4444444444444444.unfinished', 1);
  addFolder('shopping-5555555555555555', 100);
  addFolder('lock', 100);
  const removed = sweep(cache, [shop], now);
  expect([...removed].sort()).toEqual(['shop-2222222222222222', 'shop-3333333333333333.unfinished']);
  expect(readdirSync(cache).sort()).toEqual([
    'lock',
    'shop-0123456789abcdef',
    'shop-1111111111111111',
    'shop-4444444444444444.unfinished',
    'shopping-5555555555555555',
    'sources',
  ]);
});
