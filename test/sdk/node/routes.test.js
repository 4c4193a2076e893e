import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { toFile } from 'openai';
import { answer, client, question, world } from './bench.js';

describe('routes', { concurrency: 32 }, () => {
	it('embeddings come as base64, which the client asks for by itself, and as numbers', async () => {
		const w = await world();
		const { api } = client(w);
		const call = { model: 'test-small', input: ['weir', 'sluice'], dimensions: 4 };
		for (const options of [{}, { encoding_format: 'float' }]) {
			const got = await api.embeddings.create({ ...call, ...options });
			assert.deepEqual([...got.data[1].embedding], [0.25, 0.5, 0.75, 1]);
			assert.ok(got.usage.prompt_tokens > 0);
			assert.equal(JSON.parse((await w.last()).body).encoding_format, options.encoding_format ?? 'base64');
		}
	});

	it('a completion is answered, whole and streamed', async () => {
		const { api } = client(await world());
		const call = { model: 'test-small', prompt: question };
		const got = await api.completions.create(call);
		assert.equal(got.choices[0].text, answer);
		assert.equal(got.usage.completion_tokens, 6);
		let text = '';
		for await (const piece of await api.completions.create({ ...call, stream: true })) {
			assert.equal(piece.choices.length, 1);
			text += piece.choices[0].text;
		}
		assert.equal(text, answer);
	});

	it('a response is answered, whole and streamed', async () => {
		const { api } = client(await world());
		const call = { model: 'test-small', input: question };
		const got = await api.responses.create(call);
		assert.equal(got.output_text, answer);
		assert.equal(got.usage.output_tokens, 6);
		const streamed = await api.responses.stream(call).finalResponse();
		assert.equal(streamed.output_text, answer);
		assert.deepEqual(streamed.usage, got.usage);
	});

	it('a response can call a tool', async () => {
		const w = await world();
		const { api } = client(w);
		const tool = { type: 'function', name: 'river_level', strict: false, parameters: { type: 'object', properties: { river: { type: 'string' } }, required: ['river'] } };
		const called = await api.responses.create({ model: 'test-small', input: question, tools: [tool], tool_choice: 'required' });
		assert.equal(called.output[0].arguments, '{"river":"weir"}');
		const input = [{ role: 'user', content: question }, ...called.output, { type: 'function_call_output', call_id: called.output[0].call_id, output: '2.4 m' }];
		const got = await api.responses.create({ model: 'test-small', input, tools: [tool] });
		assert.equal(got.output_text, answer);
		assert.ok((await w.last()).body.includes('2.4 m'));
	});

	// As in openai-go, an error event of a response has no member "error", and is
	// handed on as an event.
	it('a stream of a response that breaks ends with an error event', async () => {
		const w = await world();
		await w.next({ cut: 3 });
		let last;
		for await (const event of await client(w).api.responses.create({ model: 'test-small', input: question, stream: true })) last = event;
		assert.equal(last.type, 'error');
		assert.equal(last.code, 'upstream_cut');
	});

	it('a moderation needs no model', async () => {
		const w = await world();
		await w.moderates();
		const { api } = client(w);
		for (const model of ['test-small', undefined]) {
			const got = await api.moderations.create({ model, input: ['one', 'two'] });
			assert.equal(got.results.length, 2);
			assert.equal(JSON.parse((await w.last()).body).model, 'test-small');
		}
	});

	it('an image is made', async () => {
		const got = await client(await world()).api.images.generate({ model: 'test-small', prompt: 'A weir at dawn', n: 2 });
		assert.equal(got.data.length, 2);
		assert.ok(Buffer.from(got.data[1].b64_json, 'base64').subarray(1, 4).equals(Buffer.from('PNG')));
	});

	it('speech comes as its bytes', async () => {
		const resp = await client(await world()).api.audio.speech.create({ model: 'test-small', input: question, voice: 'alloy' });
		const bytes = new Uint8Array(await resp.arrayBuffer());
		assert.equal(resp.headers.get('content-type'), 'audio/mpeg');
		assert.deepEqual([...bytes.subarray(0, 2), bytes.length], [0xff, 0xfb, 417]);
	});

	it('a file is transcribed', async () => {
		const w = await world();
		const file = await toFile(Buffer.from('RIFF' + '\r\n'.repeat(2048)), 'weir.wav', { type: 'audio/wav' });
		const got = await client(w).api.audio.transcriptions.create({ model: 'test-small', file, language: 'en', timestamp_granularities: ['word', 'segment'] });
		assert.equal(got.text, answer);
		const { body } = await w.last();
		for (const part of ['RIFF' + '\r\n'.repeat(2048), 'filename="weir.wav"', 'name="language"']) assert.ok(body.includes(part));
		assert.equal(body.split('name="timestamp_granularities[]"').length, 3);
	});

	it('what is not served is asked once', async () => {
		const w = await world();
		const { api, answers } = client(w);
		await assert.rejects(
			async () => {
				for await (const _ of api.batches.list());
			},
			(e) => e.status === 404 && e.code === 'unknown_url',
		);
		assert.equal(answers.length, 1);
		assert.equal((await w.calls()).length, 0);
	});
});
