import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import OpenAI from 'openai';
import { answer, client, forms, hello, question, world } from './bench.js';

const level = {
	type: 'function',
	function: { name: 'river_level', parameters: { type: 'object', properties: { river: { type: 'string' } }, required: ['river'] } },
};
const demanding = { ...hello, tools: [level], tool_choice: { type: 'function', function: { name: 'river_level' } } };
const grey = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAAAAAA6fptVAAAACklEQVR42mNoAAAAggCB2kUIOwAAAABJRU5ErkJggg==';

describe('chat', { concurrency: 32 }, () => {
	for (const provider of forms) {
		it(`a chat is answered (${provider})`, async () => {
			const w = await world({ provider });
			const { api, answers } = client(w);
			const { data, request_id, response } = await api.chat.completions.create(hello).withResponse();
			assert.equal(data.choices[0].message.content, answer);
			assert.equal(data.choices[0].finish_reason, 'stop');
			assert.equal(data.model, 'test-small');
			assert.equal(data.usage.completion_tokens, 6);
			assert.equal(data.usage.total_tokens, data.usage.prompt_tokens + 6);
			assert.equal(request_id, response.headers.get('x-request-id'));
			assert.equal(answers.length, 1);
			const sent = Object.keys((await w.last()).header);
			assert.deepEqual(sent.filter((name) => name.startsWith('X-Stainless') || name.startsWith('Openai-')), []);
		});

		it(`a stream has usage where it was asked for only (${provider})`, async () => {
			const w = await world({ provider });
			const { api } = client(w);
			for (const include_usage of [false, true]) {
				const options = include_usage ? { stream_options: { include_usage } } : {};
				let text = '';
				const frames = [];
				for await (const chunk of await api.chat.completions.create({ ...hello, ...options, stream: true })) {
					text += chunk.choices[0]?.delta.content ?? '';
					if (chunk.choices.length === 0) frames.push(chunk.usage);
				}
				assert.equal(text, answer);
				assert.equal(frames.length, include_usage ? 1 : 0);
				assert.equal(frames[0]?.completion_tokens, include_usage ? 6 : undefined);
			}
		});

		it(`a tool is called, and its result is taken (${provider})`, async () => {
			const w = await world({ provider });
			const { api } = client(w);
			const called = await api.chat.completions.create(demanding);
			const { message, finish_reason } = called.choices[0];
			assert.equal(finish_reason, 'tool_calls');
			assert.deepEqual(message.tool_calls[0].function, { name: 'river_level', arguments: '{"river":"weir"}' });
			const result = { role: 'tool', tool_call_id: message.tool_calls[0].id, content: '2.4 m' };
			const got = await api.chat.completions.create({ ...demanding, tool_choice: 'auto', messages: [...hello.messages, message, result] });
			assert.equal(got.choices[0].message.content, answer);
			assert.ok((await w.last()).body.includes('2.4 m'));
		});

		it(`the arguments of a tool can be streamed (${provider})`, async () => {
			const { api } = client(await world({ provider }));
			const got = await api.chat.completions.stream(demanding).finalChatCompletion();
			assert.equal(got.choices[0].finish_reason, 'tool_calls');
			assert.equal(got.choices[0].message.tool_calls[0].function.arguments, '{"river":"weir"}');
		});

		it(`a picture reaches the provider (${provider})`, async () => {
			const w = await world({ provider });
			const content = [{ type: 'text', text: question }, { type: 'image_url', image_url: { url: `data:image/png;base64,${grey}` } }];
			const got = await client(w).api.chat.completions.create({ ...hello, messages: [{ role: 'user', content }] });
			assert.equal(got.choices[0].message.content, answer);
			assert.ok((await w.last()).body.includes(grey));
		});

		for (const script of [{ cut: 4 }, { error_event: true }]) {
			it(`a failure inside a stream is an error: ${Object.keys(script)} (${provider})`, async () => {
				const w = await world({ provider });
				await w.next(script);
				const { api, answers } = client(w);
				await assert.rejects(
					async () => {
						for await (const _ of await api.chat.completions.create({ ...hello, stream: true }));
					},
					(e) => e instanceof OpenAI.APIError && e.type === 'server_error' && e.code !== null,
				);
				assert.equal(answers.length, 1);
			});
		}
	}

	it('models are listed and read', async () => {
		const { api } = client(await world());
		const names = [];
		for await (const m of api.models.list()) names.push(m.id);
		assert.deepEqual(names, ['test-large', 'test-small']);
		assert.equal((await api.models.retrieve('test-large')).owned_by, 'custom');
		await assert.rejects(api.models.retrieve('test-unknown'), (e) => e instanceof OpenAI.NotFoundError && e.code === 'model_not_found');
	});
});
