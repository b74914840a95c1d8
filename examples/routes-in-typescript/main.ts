/** `npm run synth`: writes dist/shop.k8s.yaml. */
import { App } from 'cdk8s';
import { Shop } from './shop.js';

const app = new App();
new Shop(app, 'shop');
app.synth();
