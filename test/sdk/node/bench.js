// What the tests here need: worlds from the bench of the Go tests, and the
// official client with base URL and key changed.
import assert from 'node:assert/strict';
import OpenAI from 'openai';

// The providers, one of each form: what the other form asks of it is translated.
export const forms = ['custom', 'custom-anthropic'];

export const question = 'What is a weir?';
export const answer = 'A weir holds a flow.';
export const hello = { model: 'test-small', messages: [{ role: 'user', content: question }] };

async function ask(path, body) {
	const init = body === undefined ? {} : { method: 'POST', body: JSON.stringify(body) };
	const resp = await fetch(process.env.WEIR_BENCH + path, init);
	return resp.json();
}

// world is a customer of a tenant whose provider is scripted.
export async function world({ provider = 'custom', plan = [], limiter_out = false } = {}) {
	const { number, base_url, key } = await ask('/worlds', { provider, plan, limiter_out });
	const at = (what, body) => ask(`/worlds/${number}/${what}`, body);
	return {
		key,
		base_url,
		next: (...scripts) => at('next', scripts),
		open: () => at('open', null),
		revoked: () => at('revoked', null),
		drain: (tokens) => at('drain', tokens),
		moderates: () => at('moderates', null),
		calls: () => at('calls'),
		last: async () => (await at('calls')).at(-1),
	};
}

const limits = ['limit', 'remaining', 'reset'].flatMap((what) => [`x-ratelimit-${what}-requests`, `x-ratelimit-${what}-tokens`]);

// client is the client as it comes out of the box, and the answers that went
// over the network, each held to the headers that all have.
export function client(w, key = w.key) {
	const answers = [];
	const counted = async (url, init) => {
		const resp = await fetch(url, init);
		assert.match(resp.headers.get('x-request-id') ?? '', /^req_[0-9a-z]{26}$/);
		for (const name of resp.status === 401 ? [] : [...limits, 'ratelimit', 'ratelimit-policy']) {
			assert.ok(resp.headers.get(name), `${new URL(url).pathname} has no ${name}`);
		}
		answers.push(resp);
		return resp;
	};
	return { api: new OpenAI({ apiKey: key, baseURL: w.base_url + '/v1', fetch: counted }), answers };
}

// until polls a condition, for at most twenty seconds.
export async function until(what, holds) {
	for (const end = Date.now() + 20_000; !(await holds()); ) {
		assert.ok(Date.now() < end, `after 20 s still not: ${what}`);
		await new Promise((resolve) => setTimeout(resolve, 20));
	}
}
