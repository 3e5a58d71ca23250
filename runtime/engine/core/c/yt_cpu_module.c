/* SPDX-License-Identifier: Apache-2.0
 *
 * Modules of the CPU backend: chains (yt_chain.h). The kernel is a slot of the device's table,
 * which is kept while lists refer to it.
 */
#define _GNU_SOURCE

#include "yt_chain.h"
#include "yt_cpu_dev.h"

yt_status cpu_module_load(yt_device *d, const void *image, uint64_t n, yt_module **out, yt_error *err)
{
	uint32_t magic = 0;
	yt_slot s = {0};
	yt_chain *chain;
	yt_module *m;
	yt_status rc;

	if (d == NULL || image == NULL || n < sizeof magic || out == NULL)
		return yt_fail(err, YT_E_INVALID, "module_load: device, image and out are required");
	*out = NULL;
	memcpy(&magic, image, sizeof magic);
	if (magic != YT_CHAIN_MAGIC)
		return yt_fail(err, YT_E_NOT_SUPPORTED,
			       "module_load: the CPU backend loads only chains (yt_chain.h); a cubin needs a GPU");
	rc = yt_cpu_chain_load(image, n, &chain, err);
	if (rc != YT_OK)
		return rc;
	m = calloc(1, sizeof *m);
	s.kind = YT_SLOT_KERNEL;
	s.host = chain;
	s.bytes = n;
	if (m != NULL) {
		pthread_mutex_lock(&d->lock);
		m->dev = d;
		m->kernel = yt_table_add(&d->table, &s);
		pthread_mutex_unlock(&d->lock);
	}
	if (m == NULL || m->kernel == 0) {
		free(m);
		free(chain);
		return yt_fail(err, YT_E_OOM, "module_load: no memory for the module");
	}
	*out = m;
	return yt_ok(err);
}

yt_status cpu_module_unload(yt_module *m, yt_error *err)
{
	yt_status rc = YT_OK;
	void *chain = NULL;
	yt_device *d;
	yt_slot *s;

	if (m == NULL)
		return yt_fail(err, YT_E_INVALID, "module_unload: no module");
	d = m->dev;
	pthread_mutex_lock(&d->lock);
	s = yt_table_get(&d->table, m->kernel, YT_SLOT_KERNEL);
	if (s->uses != 0 || !cpu_slot_unused(d, m->kernel)) {
		rc = yt_fail(err, YT_E_BUSY, "module_unload: submitted work uses its kernel");
	} else {
		chain = s->host;
		yt_table_remove(&d->table, s);
	}
	pthread_mutex_unlock(&d->lock);
	if (rc != YT_OK)
		return rc;
	free(chain);
	free(m);
	return yt_ok(err);
}

yt_status cpu_kernel_get(yt_module *m, const char *name, uint64_t *kernel, yt_error *err)
{
	if (m == NULL || name == NULL || kernel == NULL)
		return yt_fail(err, YT_E_INVALID, "kernel_get: module, name and kernel are required");
	if (strcmp(name, "chain") != 0)
		return yt_fail(err, YT_E_INVALID, "kernel_get: no kernel \"%.64s\"; a chain has \"chain\"", name);
	*kernel = m->kernel;
	return yt_ok(err);
}
