//go:build cgo

#include "shim.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Indices in struct OrtApi. */
enum {
	CREATE_STATUS = 0,
	GET_ERROR_CODE = 1,
	GET_ERROR_MESSAGE = 2,
	CREATE_ENV = 3,
	CREATE_SESSION_FROM_ARRAY = 8,
	RUN = 9,
	CREATE_SESSION_OPTIONS = 10,
	SET_SESSION_EXECUTION_MODE = 13,
	DISABLE_CPU_MEM_ARENA = 19,
	SET_SESSION_GRAPH_OPTIMIZATION_LEVEL = 23,
	SET_INTRA_OP_NUM_THREADS = 24,
	SET_INTER_OP_NUM_THREADS = 25,
	SESSION_GET_INPUT_COUNT = 30,
	SESSION_GET_OUTPUT_COUNT = 31,
	SESSION_GET_INPUT_TYPE_INFO = 33,
	SESSION_GET_OUTPUT_TYPE_INFO = 34,
	SESSION_GET_INPUT_NAME = 36,
	SESSION_GET_OUTPUT_NAME = 37,
	CREATE_RUN_OPTIONS = 39,
	RUN_OPTIONS_SET_TERMINATE = 46,
	RUN_OPTIONS_UNSET_TERMINATE = 47,
	CREATE_TENSOR_WITH_DATA_AS_ORT_VALUE = 49,
	IS_TENSOR = 50,
	CAST_TYPE_INFO_TO_TENSOR_INFO = 55,
	GET_TENSOR_ELEMENT_TYPE = 60,
	GET_DIMENSIONS_COUNT = 61,
	GET_DIMENSIONS = 62,
	GET_SYMBOLIC_DIMENSIONS = 63,
	GET_TENSOR_TYPE_AND_SHAPE = 65,
	CREATE_MEMORY_INFO = 68,
	CREATE_CPU_MEMORY_INFO = 69,
	ALLOCATOR_FREE = 76,
	GET_ALLOCATOR_WITH_DEFAULT_OPTIONS = 78,
	RELEASE_ENV = 92,
	RELEASE_STATUS = 93,
	RELEASE_MEMORY_INFO = 94,
	RELEASE_SESSION = 95,
	RELEASE_VALUE = 96,
	RELEASE_RUN_OPTIONS = 97,
	RELEASE_TYPE_INFO = 98,
	RELEASE_TENSOR_TYPE_AND_SHAPE_INFO = 99,
	RELEASE_SESSION_OPTIONS = 100,
	ADD_SESSION_CONFIG_ENTRY = 130,
	RUN_WITH_BINDING = 133,
	CREATE_IO_BINDING = 134,
	RELEASE_IO_BINDING = 135,
	BIND_INPUT = 136,
	BIND_OUTPUT = 137,
	/* from API version 11 */
	APPEND_TENSORRT_V2 = 170,
	CREATE_TENSORRT_OPTIONS = 171,
	UPDATE_TENSORRT_OPTIONS = 172,
	RELEASE_TENSORRT_OPTIONS = 174,
	APPEND_CUDA_V2 = 204,
	CREATE_CUDA_OPTIONS = 205,
	UPDATE_CUDA_OPTIONS = 206,
	RELEASE_CUDA_OPTIONS = 208,
};

/* Values of ONNX Runtime's enumerations. */
enum {
	LOGGING_FATAL = 4,
	EXECUTION_SEQUENTIAL = 0,
	OPTIMIZE_ALL = 99,
	ALLOCATOR_DEVICE = 0,
	MEM_TYPE_DEFAULT = 0,
	CODE_FAIL = 1,
};

typedef void *status;

#define CALL(rt, index, ret, ...) ((ret(*)(__VA_ARGS__))(rt)->api[index])

static int fail(ort_error *err, const char *what, const char *detail)
{
	err->code = ORT_SHIM_FAILED;
	snprintf(err->msg, sizeof err->msg, "%s%s%.900s", what,
		 detail ? ": " : "", detail ? detail : "");
	return err->code;
}

static void release(const ort_runtime *rt, int index, void *object)
{
	if (object)
		CALL(rt, index, void, void *)(object);
}

/* take_status copies a status to err and releases it. NULL is success. */
static int take_status(const ort_runtime *rt, status st, ort_error *err)
{
	if (!st)
		return 0;
	err->code = CALL(rt, GET_ERROR_CODE, int, const void *)(st);
	if (err->code == 0)
		err->code = CODE_FAIL;
	const char *msg = CALL(rt, GET_ERROR_MESSAGE, const char *, const void *)(st);
	snprintf(err->msg, sizeof err->msg, "%s", msg);
	release(rt, RELEASE_STATUS, st);
	return err->code;
}

int ort_load(ort_runtime *rt, const char *path, ort_error *err)
{
	rt->handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	if (!rt->handle)
		return fail(err, "dlopen", dlerror());
	const void *(*get)(void) = (const void *(*)(void))dlsym(rt->handle, "OrtGetApiBase");
	if (!get)
		return fail(err, "not an ONNX Runtime library", dlerror());
	rt->base = get();
	if (!rt->base)
		return fail(err, "OrtGetApiBase returned NULL", NULL);
	/* OrtApiBase: GetApi, GetVersionString. */
	const char *v = ((const char *(*const *)(void))rt->base)[1]();
	snprintf(rt->version, sizeof rt->version, "%s", v ? v : "");
	return 0;
}

/* check verifies the indices above with an error object. */
static int check(const ort_runtime *rt, ort_error *err)
{
	static const char want[] = "yoctune";
	status st = CALL(rt, CREATE_STATUS, status, int, const char *)(CODE_FAIL, want);
	if (!st)
		return fail(err, "self-check of the function table failed", NULL);
	ort_error got = {0};
	if (take_status(rt, st, &got) != CODE_FAIL || strcmp(got.msg, want) != 0)
		return fail(err, "self-check of the function table failed", got.msg);
	return 0;
}

int ort_start(ort_runtime *rt, uint32_t api, ort_error *err)
{
	rt->api = ((void *const *(*const *)(uint32_t))rt->base)[0](api);
	if (!rt->api)
		return fail(err, "the library does not provide the API of its version", NULL);
	int rc = check(rt, err);
	if (rc)
		return rc;
	/* Every failure is returned with its message. The runtime's log on standard error
	 * would repeat it. */
	rc = take_status(rt, CALL(rt, CREATE_ENV, status, int, const char *, void **)
		  (LOGGING_FATAL, "yoctune", &rt->env), err);
	if (rc)
		return rc;
	return take_status(rt, CALL(rt, CREATE_CPU_MEMORY_INFO, status, int, int, void **)
		    (ALLOCATOR_DEVICE, MEM_TYPE_DEFAULT, &rt->memory), err);
}

void ort_stop(ort_runtime *rt)
{
	if (!rt->api)
		return;
	release(rt, RELEASE_MEMORY_INFO, rt->memory);
	release(rt, RELEASE_ENV, rt->env);
	rt->memory = rt->env = NULL;
}

int ort_options_new(ort_runtime *rt, const ort_settings *set, void **out, ort_error *err)
{
	/* Spinning threads occupy cores that other stages need. */
	const char *spin = set->spinning ? "1" : "0";
	const struct { const char *key, *value; } entries[] = {
		{"session.intra_op.allow_spinning", spin},
		{"session.inter_op.allow_spinning", spin},
	};
	int rc = take_status(rt, CALL(rt, CREATE_SESSION_OPTIONS, status, void **)(out), err);
	if (!rc)
		rc = take_status(rt, CALL(rt, SET_SESSION_EXECUTION_MODE, status, void *, int)
			  (*out, EXECUTION_SEQUENTIAL), err);
	if (!rc)
		rc = take_status(rt, CALL(rt, SET_SESSION_GRAPH_OPTIMIZATION_LEVEL, status, void *, int)
			  (*out, OPTIMIZE_ALL), err);
	if (!rc)
		rc = take_status(rt, CALL(rt, SET_INTRA_OP_NUM_THREADS, status, void *, int)(*out, set->threads), err);
	if (!rc)
		rc = take_status(rt, CALL(rt, SET_INTER_OP_NUM_THREADS, status, void *, int)(*out, 1), err);
	for (size_t i = 0; !rc && i < sizeof entries / sizeof *entries; i++)
		rc = take_status(rt, CALL(rt, ADD_SESSION_CONFIG_ENTRY, status, void *, const char *, const char *)
			  (*out, entries[i].key, entries[i].value), err);
	if (!rc && !set->arena)
		rc = take_status(rt, CALL(rt, DISABLE_CPU_MEM_ARENA, status, void *)(*out), err);
	return rc;
}

void ort_options_free(ort_runtime *rt, void *options) { release(rt, RELEASE_SESSION_OPTIONS, options); }

int ort_append(ort_runtime *rt, void *options, int provider, const char *const *keys,
	       const char *const *values, size_t n, ort_error *err)
{
	static const struct { int create, update, append, release; } calls[] = {
		[ORT_CUDA] = {CREATE_CUDA_OPTIONS, UPDATE_CUDA_OPTIONS, APPEND_CUDA_V2, RELEASE_CUDA_OPTIONS},
		[ORT_TENSORRT] = {CREATE_TENSORRT_OPTIONS, UPDATE_TENSORRT_OPTIONS, APPEND_TENSORRT_V2, RELEASE_TENSORRT_OPTIONS},
	};
	void *own = NULL;
	int rc = take_status(rt, CALL(rt, calls[provider].create, status, void **)(&own), err);
	if (!rc && n)
		rc = take_status(rt, CALL(rt, calls[provider].update, status, void *, const char *const *,
				   const char *const *, size_t)(own, keys, values, n), err);
	if (!rc)
		rc = take_status(rt, CALL(rt, calls[provider].append, status, void *, const void *)(options, own), err);
	release(rt, calls[provider].release, own);
	return rc;
}

int ort_session_new(ort_runtime *rt, ort_session *s, const void *model, size_t bytes,
		    const void *options, ort_error *err)
{
	s->rt = rt;
	int rc = take_status(rt, CALL(rt, CREATE_SESSION_FROM_ARRAY, status, void *, const void *, size_t,
			       const void *, void **)(rt->env, model, bytes, options, &s->session), err);
	if (!rc)
		rc = take_status(rt, CALL(rt, CREATE_RUN_OPTIONS, status, void **)(&s->run_options), err);
	if (rc)
		ort_session_free(s);
	return rc;
}

int ort_session_counts(ort_session *s, size_t *inputs, size_t *outputs, ort_error *err)
{
	ort_runtime *rt = s->rt;
	int rc = take_status(rt, CALL(rt, SESSION_GET_INPUT_COUNT, status, const void *, size_t *)
		      (s->session, inputs), err);
	if (!rc)
		rc = take_status(rt, CALL(rt, SESSION_GET_OUTPUT_COUNT, status, const void *, size_t *)
			  (s->session, outputs), err);
	return rc;
}

/* describe fills type and shape from an OrtTensorTypeAndShapeInfo. */
static int describe(ort_runtime *rt, const void *info, ort_io *io, ort_error *err)
{
	size_t n = 0;
	const char *axes[ORT_MAX_DIMS] = {0};
	int rc = take_status(rt, CALL(rt, GET_TENSOR_ELEMENT_TYPE, status, const void *, int32_t *)
		      (info, &io->dtype), err);
	if (!rc)
		rc = take_status(rt, CALL(rt, GET_DIMENSIONS_COUNT, status, const void *, size_t *)(info, &n), err);
	if (rc)
		return rc;
	if (n > ORT_MAX_DIMS)
		return fail(err, "tensor has more than 8 dimensions", io->name);
	io->ndims = (int32_t)n;
	rc = take_status(rt, CALL(rt, GET_DIMENSIONS, status, const void *, int64_t *, size_t)
		  (info, io->dims, n), err);
	if (!rc)
		rc = take_status(rt, CALL(rt, GET_SYMBOLIC_DIMENSIONS, status, const void *, const char **, size_t)
			  (info, axes, n), err);
	for (size_t i = 0; !rc && i < n; i++)
		snprintf(io->axes[i], sizeof io->axes[i], "%s", axes[i] ? axes[i] : "");
	return rc;
}

int ort_session_io(ort_session *s, int output, size_t index, ort_io *io, ort_error *err)
{
	ort_runtime *rt = s->rt;
	void *allocator = NULL, *type = NULL;
	const void *info = NULL;
	char *name = NULL;

	int rc = take_status(rt, CALL(rt, GET_ALLOCATOR_WITH_DEFAULT_OPTIONS, status, void **)(&allocator), err);
	if (!rc)
		rc = take_status(rt, CALL(rt, output ? SESSION_GET_OUTPUT_NAME : SESSION_GET_INPUT_NAME, status,
				   const void *, size_t, void *, char **)
			  (s->session, index, allocator, &name), err);
	if (rc)
		return rc;
	int length = snprintf(io->name, sizeof io->name, "%s", name);
	rc = take_status(rt, CALL(rt, ALLOCATOR_FREE, status, void *, void *)(allocator, name), err);
	if (!rc && length >= (int)sizeof io->name)
		rc = fail(err, "tensor name is longer than 255 bytes", io->name);
	if (!rc)
		rc = take_status(rt, CALL(rt, output ? SESSION_GET_OUTPUT_TYPE_INFO : SESSION_GET_INPUT_TYPE_INFO,
				   status, const void *, size_t, void **)(s->session, index, &type), err);
	if (!rc)
		rc = take_status(rt, CALL(rt, CAST_TYPE_INFO_TO_TENSOR_INFO, status, const void *, const void **)
			  (type, &info), err);
	io->ndims = -1;
	if (!rc && info)
		rc = describe(rt, info, io, err);
	release(rt, RELEASE_TYPE_INFO, type);
	return rc;
}

/* add appends a copy of a name to a list of names. */
static int add(const char **names, size_t *n, const char *name, ort_error *err)
{
	if (*n == ORT_MAX_TENSORS)
		return fail(err, "too many tensors", name);
	if (!(names[*n] = strdup(name)))
		return fail(err, "out of memory", NULL);
	++*n;
	return 0;
}

int ort_session_input(ort_session *s, const char *input, ort_error *err)
{
	return add(s->inputs, &s->ninputs, input, err);
}

int ort_session_output(ort_session *s, const char *output, ort_error *err)
{
	return add(s->outputs, &s->noutputs, output, err);
}

void ort_session_free(ort_session *s)
{
	release(s->rt, RELEASE_RUN_OPTIONS, s->run_options);
	release(s->rt, RELEASE_SESSION, s->session);
	for (size_t i = 0; i < s->ninputs; i++)
		free((void *)s->inputs[i]);
	for (size_t i = 0; i < s->noutputs; i++)
		free((void *)s->outputs[i]);
	s->session = s->run_options = NULL;
	s->ninputs = s->noutputs = 0;
}

int ort_tensor_new(ort_runtime *rt, ort_tensor *t, int32_t type, const int64_t *dims, size_t ndims,
		   size_t bytes, ort_error *err)
{
	/* The core requires this alignment of registered memory. aligned_alloc requires a
	 * multiple of the alignment. */
	size_t padded = (bytes + 255) / 256 * 256;
	void *data = aligned_alloc(256, padded);
	if (!data)
		return fail(err, "out of memory", NULL);
	/* Touch every page now and not during the first frame. */
	memset(data, 0, padded);
	int rc = ort_tensor_over(rt, t, type, dims, ndims, data, bytes, err);
	if (rc)
		free(data);
	else
		t->borrowed = 0;
	return rc;
}

/* tensor_in makes a tensor over memory of the kind that the memory info describes. */
static int tensor_in(ort_runtime *rt, ort_tensor *t, int32_t type, const void *memory, const int64_t *dims,
		     size_t ndims, void *data, size_t bytes, ort_error *err)
{
	t->data = data;
	t->bytes = bytes;
	t->borrowed = 1;
	int rc = take_status(rt, CALL(rt, CREATE_TENSOR_WITH_DATA_AS_ORT_VALUE, status, const void *, void *, size_t,
			       const int64_t *, size_t, int, void **)
		      (memory, t->data, bytes, dims, ndims, type, &t->value), err);
	if (rc)
		ort_tensor_free(rt, t);
	return rc;
}

int ort_tensor_over(ort_runtime *rt, ort_tensor *t, int32_t type, const int64_t *dims, size_t ndims,
		    void *data, size_t bytes, ort_error *err)
{
	return tensor_in(rt, t, type, rt->memory, dims, ndims, data, bytes, err);
}

int ort_tensor_at(ort_runtime *rt, ort_tensor *t, int32_t type, const int64_t *dims, size_t ndims,
		  uintptr_t address, size_t bytes, ort_error *err)
{
	return tensor_in(rt, t, type, rt->memory, dims, ndims, (void *)address, bytes, err);
}

int ort_tensor_on_gpu(ort_runtime *rt, ort_tensor *t, int32_t type, const int64_t *dims, size_t ndims,
		      uintptr_t address, size_t bytes, int gpu, ort_error *err)
{
	void *memory = NULL;
	int rc = take_status(rt, CALL(rt, CREATE_MEMORY_INFO, status, const char *, int, int, int, void **)
		      ("Cuda", ALLOCATOR_DEVICE, gpu, MEM_TYPE_DEFAULT, &memory), err);
	if (!rc)
		rc = tensor_in(rt, t, type, memory, dims, ndims, (void *)address, bytes, err);
	release(rt, RELEASE_MEMORY_INFO, memory);
	return rc;
}

void ort_tensor_free(ort_runtime *rt, ort_tensor *t)
{
	release(rt, RELEASE_VALUE, t->value);
	if (!t->borrowed)
		free(t->data);
	t->value = NULL;
	t->data = NULL;
}

static int run(ort_session *s, ort_tensor *const *ins, void **out, size_t n, ort_error *err)
{
	const void *in[ORT_MAX_TENSORS];
	for (size_t i = 0; i < s->ninputs; i++)
		in[i] = ins[i]->value;
	return take_status(s->rt, CALL(s->rt, RUN, status, void *, const void *, const char *const *,
				const void *const *, size_t, const char *const *, size_t, void **)
		    (s->session, s->run_options, s->inputs, in, s->ninputs, s->outputs, n, out), err);
}

/* inspect reports the name, type and shape of an output. */
static int inspect(ort_session *s, const void *out, const char *name, ort_io *io, ort_error *err)
{
	ort_runtime *rt = s->rt;
	void *info = NULL;
	int tensor = 0;
	int rc = take_status(rt, CALL(rt, IS_TENSOR, status, const void *, int *)(out, &tensor), err);
	if (!rc && !tensor)
		rc = fail(err, "the output is not a tensor", name);
	if (!rc)
		rc = take_status(rt, CALL(rt, GET_TENSOR_TYPE_AND_SHAPE, status, const void *, void **)(out, &info), err);
	if (!rc) {
		snprintf(io->name, sizeof io->name, "%s", name);
		rc = describe(rt, info, io, err);
	}
	release(rt, RELEASE_TENSOR_TYPE_AND_SHAPE_INFO, info);
	return rc;
}

int ort_probe(ort_session *s, ort_tensor *const *ins, ort_io io[ORT_MAX_TENSORS], ort_error *err)
{
	void *outs[ORT_MAX_TENSORS] = {0};
	int rc = run(s, ins, outs, s->noutputs, err);
	for (size_t i = 0; !rc && i < s->noutputs; i++)
		rc = inspect(s, outs[i], s->outputs[i], &io[i], err);
	for (size_t i = 0; i < s->noutputs; i++)
		release(s->rt, RELEASE_VALUE, outs[i]);
	return rc;
}

int ort_bind(ort_session *s, ort_tensor *const *ins, ort_tensor *const *outs, size_t n,
	     void **binding, ort_error *err)
{
	ort_runtime *rt = s->rt;
	if (n != s->noutputs)
		return fail(err, "one tensor is required for each output", NULL);
	int rc = take_status(rt, CALL(rt, CREATE_IO_BINDING, status, void *, void **)(s->session, binding), err);
	for (size_t i = 0; !rc && i < s->ninputs; i++)
		rc = take_status(rt, CALL(rt, BIND_INPUT, status, void *, const char *, const void *)
			  (*binding, s->inputs[i], ins[i]->value), err);
	for (size_t i = 0; !rc && i < n; i++)
		rc = take_status(rt, CALL(rt, BIND_OUTPUT, status, void *, const char *, const void *)
			  (*binding, s->outputs[i], outs[i]->value), err);
	if (rc) {
		ort_unbind(rt, *binding);
		*binding = NULL;
	}
	return rc;
}

int ort_run_bound(ort_session *s, void *binding)
{
	return take_status(s->rt, CALL(s->rt, RUN_WITH_BINDING, status, void *, const void *, const void *)
		    (s->session, s->run_options, binding), &s->err);
}

void ort_unbind(ort_runtime *rt, void *binding) { release(rt, RELEASE_IO_BINDING, binding); }

void ort_terminate(ort_session *s)
{
	ort_error ignored;
	take_status(s->rt, CALL(s->rt, RUN_OPTIONS_SET_TERMINATE, status, void *)(s->run_options), &ignored);
}

void ort_resume(ort_session *s)
{
	ort_error ignored;
	take_status(s->rt, CALL(s->rt, RUN_OPTIONS_UNSET_TERMINATE, status, void *)(s->run_options), &ignored);
}
