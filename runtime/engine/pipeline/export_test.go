package pipeline

// Info describes what the pipeline will run on.
func (p *Pipeline) Info() RuntimeInfo { return p.info }
