/* shim.h - the part of ONNX Runtime's C API that yoctune uses.
 *
 * The API is one table of function pointers. New versions only append to it, so this
 * shim addresses functions by index and works with libraries that are older or newer
 * than any header. A function that can fail returns 0 or the runtime's error code, and
 * stores the runtime's message in *err. The shim has no state of its own.
 *
 * Reference: struct OrtApi of onnxruntime_c_api.h, API version 8. Functions of version
 * 11 are called only if the table has them.
 */
#ifndef YOCTUNE_ORT_SHIM_H
#define YOCTUNE_ORT_SHIM_H

#include <stddef.h>
#include <stdint.h>

enum { ORT_MAX_DIMS = 8, ORT_MAX_NAME = 256, ORT_MAX_TENSORS = 8 };

/* Codes of this file, outside the range of OrtErrorCode. */
enum { ORT_SHIM_FAILED = -1 };

typedef struct {
	int32_t code;
	char msg[1024];
} ort_error;

typedef struct {
	void *handle;       /* of dlopen; never closed, because the runtime's threads persist */
	const void *base;   /* OrtApiBase */
	void *const *api;   /* OrtApi */
	void *env;          /* OrtEnv */
	void *memory;       /* OrtMemoryInfo of CPU memory */
	char version[32];
} ort_runtime;

typedef struct {
	char name[ORT_MAX_NAME];
	int32_t dtype;
	int32_t ndims; /* -1: not a tensor */
	int64_t dims[ORT_MAX_DIMS];
	char axes[ORT_MAX_DIMS][64];
} ort_io;

typedef struct {
	ort_runtime *rt;
	void *session;
	void *run_options;
	const char *inputs[ORT_MAX_TENSORS]; /* owned, as the outputs */
	const char *outputs[ORT_MAX_TENSORS];
	size_t ninputs, noutputs;
	ort_error err;      /* of the last run */
} ort_session;

typedef struct {
	int32_t threads;  /* inside an operator */
	int32_t spinning; /* idle threads spin */
	int32_t arena;    /* memory of the CPU is kept in an arena */
} ort_settings;

/* Execution providers other than the CPU. */
enum { ORT_CUDA = 1, ORT_TENSORRT = 2 };

typedef struct {
	void *value; /* OrtValue over data */
	void *data;  /* 64-byte aligned, 256 where it is owned */
	size_t bytes;
	int borrowed; /* data belongs to the caller */
} ort_tensor;

int ort_load(ort_runtime *rt, const char *path, ort_error *err);
int ort_start(ort_runtime *rt, uint32_t api, ort_error *err);
void ort_stop(ort_runtime *rt);

/* ort_options_new creates OrtSessionOptions. */
int ort_options_new(ort_runtime *rt, const ort_settings *set, void **options, ort_error *err);
void ort_options_free(ort_runtime *rt, void *options);

/* ort_append adds an execution provider before the existing ones. It is the only reliable
 * test for a provider: the library also lists unusable ones that it was built with. */
int ort_append(ort_runtime *rt, void *options, int provider, const char *const *keys,
	       const char *const *values, size_t n, ort_error *err);

int ort_session_new(ort_runtime *rt, ort_session *s, const void *model, size_t bytes,
		    const void *options, ort_error *err);
int ort_session_counts(ort_session *s, size_t *inputs, size_t *outputs, ort_error *err);
int ort_session_io(ort_session *s, int output, size_t index, ort_io *io, ort_error *err);
int ort_session_input(ort_session *s, const char *input, ort_error *err);   /* adds one */
int ort_session_output(ort_session *s, const char *output, ort_error *err); /* adds one */
void ort_session_free(ort_session *s);

/* The type of elements is a number of ONNX. */
int ort_tensor_new(ort_runtime *rt, ort_tensor *t, int32_t type, const int64_t *dims, size_t ndims,
		   size_t bytes, ort_error *err);

/* ort_tensor_over makes a tensor over the caller's memory. */
int ort_tensor_over(ort_runtime *rt, ort_tensor *t, int32_t type, const int64_t *dims, size_t ndims,
		    void *data, size_t bytes, ort_error *err);

/* ort_tensor_at makes a tensor over memory of the CPU that the program knows by address only. */
int ort_tensor_at(ort_runtime *rt, ort_tensor *t, int32_t type, const int64_t *dims, size_t ndims,
		  uintptr_t address, size_t bytes, ort_error *err);

/* ort_tensor_on_gpu makes a tensor over memory of a CUDA device. */
int ort_tensor_on_gpu(ort_runtime *rt, ort_tensor *t, int32_t type, const int64_t *dims, size_t ndims,
		      uintptr_t address, size_t bytes, int gpu, ort_error *err);
void ort_tensor_free(ort_runtime *rt, ort_tensor *t);

/* ort_probe runs the model once with outputs allocated by the runtime and reports the shape
 * and type of each. */
int ort_probe(ort_session *s, ort_tensor *const *ins, ort_io io[ORT_MAX_TENSORS], ort_error *err);

/* ort_bind binds the session to fixed tensors, one for each input and output. */
int ort_bind(ort_session *s, ort_tensor *const *ins, ort_tensor *const *outs, size_t n,
	     void **binding, ort_error *err);
int ort_run_bound(ort_session *s, void *binding);
void ort_unbind(ort_runtime *rt, void *binding);

/* ort_terminate makes a run in another thread return at its next node. */
void ort_terminate(ort_session *s);

/* ort_resume undoes ort_terminate. No run may be in progress. */
void ort_resume(ort_session *s);

#endif
