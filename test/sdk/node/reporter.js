// Prints every test as a line of JSON: its name, and why it failed. A suite is
// its tests, unless it fails by itself.
export default async function* reporter(events) {
	for await (const { type, data } of events) {
		const suite = data.details?.type === 'suite' || /\.test\.js$/.test(data.name ?? '');
		if (type === 'test:pass' && !suite) {
			yield JSON.stringify({ name: data.name, failure: '' }) + '\n';
		}
		if (type === 'test:fail' && data.details.error.failureType !== 'subtestsFailed') {
			const cause = data.details.error.cause ?? data.details.error;
			yield JSON.stringify({ name: data.name, failure: String(cause?.stack ?? cause) }) + '\n';
		}
	}
}
