import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import OpenAI from 'openai';
import { client, hello, question, until, world } from './bench.js';

// What is asked for, with the retries that the client comes with.
const asks = {
	chat: (api, most, options) => api.chat.completions.create({ ...hello, max_completion_tokens: most }, options),
	stream: async (api, most, options) => {
		for await (const _ of await api.chat.completions.create({ ...hello, max_completion_tokens: most, stream: true }, options));
	},
	response: (api, most, options) => api.responses.create({ model: 'test-small', input: question, max_output_tokens: most }, options),
};

const rejected = async (call) => {
	try {
		await call;
	} catch (e) {
		return e;
	}
	assert.fail('the call was answered');
};

describe('retries', { concurrency: 32 }, () => { // most of it is waiting
	for (const [what, ask] of Object.entries(asks)) {
		it(`the client comes back exactly when it was told (${what})`, async () => {
			const w = await world({ plan: [{ dimension: 'tokens', window: 'minute', amount: 60_000 }] });
			await w.drain(60_000);
			const { api, answers } = client(w);
			const began = performance.now();
			await ask(api, 3000);
			const took = performance.now() - began;
			const wait = Number(answers[0].headers.get('retry-after-ms'));
			assert.deepEqual(answers.map((a) => a.status), [429, 200]);
			assert.ok(wait >= 1 && wait <= 3100 && took >= wait, `told to wait ${wait} ms, it took ${took}`);
			assert.equal((await w.calls()).length, 1);
		});

		// openai 6.49.0 waits as long as it is told, however long that is.
		it(`a wait of many seconds is not cut short (${what})`, async () => {
			const w = await world({ plan: [{ dimension: 'requests', window: 'minute', amount: 1 }] });
			const { api, answers } = client(w);
			await ask(api, 10);
			const waits = ask(api, 10, { signal: AbortSignal.timeout(10_000) }); // more than any backoff
			await Promise.race([rejected(waits), new Promise((resolve) => setTimeout(resolve, 10_500))]);
			assert.deepEqual(answers.map((a) => a.status), [200, 429]);
			assert.ok(Number(answers[1].headers.get('retry-after')) > 30);
		});

		it(`a call beyond the concurrency comes through once a slot is free (${what})`, async () => {
			const w = await world({ plan: [{ dimension: 'concurrency', window: 'none', amount: 1 }] });
			await w.next({ gated: true });
			const [first, second] = [client(w), client(w)];
			const one = ask(first.api, 10);
			await until('the first call is at the provider', async () => (await w.calls()).length === 1);
			const began = performance.now();
			const two = ask(second.api, 10);
			await until('the second call is refused', () => second.answers.length > 0);
			await w.open();
			await Promise.all([one, two]);
			const statuses = second.answers.map((a) => a.status); // a slow machine may not have freed the slot within the second
			assert.deepEqual([...new Set(statuses)], [429, 200]);
			assert.equal(second.answers[0].headers.get('retry-after'), '1');
			assert.ok(performance.now() - began >= 1000);
		});

		it(`what no wait can help is asked once (${what})`, async () => {
			const w = await world({ plan: [{ dimension: 'requests', window: 'day', amount: 1 }, { dimension: 'tokens', window: 'minute', amount: 1000 }] });
			const once = async (key, most, status, type, code) => {
				const { api, answers } = client(w, key);
				const e = await rejected(ask(api, most));
				assert.deepEqual([e.status, e.type, e.code], [status, type, code]);
				assert.deepEqual(answers.map((a) => a.headers.get('x-should-retry')), ['false']);
				return e;
			};
			await once(w.key, 1001, 413, 'tokens', 'request_too_large');
			await once(await w.revoked(), 1, 401, 'invalid_request_error', 'invalid_api_key');
			await once('sk-proj-123', 1, 401, 'invalid_request_error', 'invalid_api_key');
			await ask(client(w).api, 10);
			const e = await once(w.key, 10, 429, 'insufficient_quota', 'insufficient_quota');
			assert.ok(e instanceof OpenAI.RateLimitError && e.error.quota.name === 'requests per day');
			assert.ok(Number(e.headers.get('retry-after')) > 9 * 3600);
			assert.equal((await w.calls()).length, 1);
		});

		it(`a provider without room is tried again when it said so (${what})`, async () => {
			const w = await world();
			await w.next({ fails: 429, retry_after: '2' });
			const { api, answers } = client(w);
			const began = performance.now();
			await ask(api, 10);
			assert.deepEqual(answers.map((a) => a.status), [503, 200]);
			assert.ok(performance.now() - began >= Number(answers[0].headers.get('retry-after-ms')));
		});

		it(`an overloaded provider is tried again (${what})`, async () => {
			const w = await world();
			await w.next({ fails: 503, retry_after: '1' });
			const { api, answers } = client(w);
			await ask(api, 10);
			assert.ok(answers.length > 1 && answers.length < 4);
			assert.equal((await w.calls()).length, 2);
		});

		it(`a failure of the provider is tried again, twice (${what})`, async () => {
			const w = await world();
			await w.next({ fails: 500 }, { fails: 500 }, { fails: 500 });
			const { api, answers } = client(w);
			const e = await rejected(ask(api, 10));
			assert.deepEqual([e.status, e.type, e.code], [502, 'server_error', 'upstream_error']);
			assert.equal(answers.length, 3);
		});

		it(`keys that the provider refuses are not tried again (${what})`, async () => {
			const w = await world();
			await w.next({ fails: 401 });
			const { api, answers } = client(w);
			const e = await rejected(ask(api, 10));
			assert.deepEqual([e.status, e.code, answers.length], [502, 'upstream_auth_failed', 1]);
		});

		it(`a limiter that is out is tried again when it was told (${what})`, async () => {
			const w = await world({ limiter_out: true, plan: [{ dimension: 'requests', window: 'minute', amount: 100, outage: 'closed' }] });
			const { api, answers } = client(w);
			const began = performance.now();
			const e = await rejected(ask(api, 10));
			assert.deepEqual([e.status, e.type, e.code], [503, 'server_error', 'limiter_unavailable']);
			assert.deepEqual(answers.map((a) => a.headers.get('retry-after')), ['5', '5', '5']);
			assert.ok(performance.now() - began >= 10_000);
			assert.equal((await w.calls()).length, 0);
		});
	}
});
