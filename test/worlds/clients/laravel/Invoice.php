<?php
namespace App\Models;

use Illuminate\Database\Eloquent\Model;

class Invoice extends Model
{
    public $timestamps = false;
    protected $fillable = ['name'];
    protected $casts = ['id' => 'string']; // in JSON
}
